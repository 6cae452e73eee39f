// Leaves, shape ops and what libraries compute.
#include "ir/op_rows.h"

namespace heddle::op_rows {
namespace {

constexpr AttrSpec kValue[] = {{"value", AttrType::Scalar}};
constexpr AttrSpec kAxis[] = {{"axis", AttrType::Int}};
constexpr AttrSpec kAxes[] = {{"axes", AttrType::Ints}};
constexpr AttrSpec kSizes[] = {{"sizes", AttrType::Sizes}};
constexpr AttrSpec kSlice[] = {
    {"starts", AttrType::Sizes}, {"stops", AttrType::Sizes}, {"steps", AttrType::Ints, false}};
constexpr AttrSpec kFull[] = {{"sizes", AttrType::Sizes}, {"dtype", AttrType::DType}};
constexpr AttrSpec kIota[] = {{"sizes", AttrType::Sizes}, {"axis", AttrType::Int}};
constexpr AttrSpec kPad[] = {{"lows", AttrType::Ints}, {"highs", AttrType::Ints}};
constexpr AttrSpec kArgsort[] = {{"axis", AttrType::Int}, {"descending", AttrType::Bool, false}};

const OpDef kStructuralRows[] = {
    {"constant", K::Constant, 0, R::Promote, "", nullptr, nullptr, kValue},
    {"size", K::SizeOf, 1, R::Promote, "", nullptr, nullptr, kAxis},
    {"broadcast", K::Broadcast, 1, R::Promote, "", nullptr, nullptr, kAxes},
    {"expand", K::Expand, 1, R::Promote, "", nullptr, nullptr, kSizes},
    {"reshape", K::Reshape, 1, R::Promote, "", nullptr, nullptr, kSizes},
    {"permute", K::Permute, 1, R::Promote, "", nullptr, nullptr, kAxes},
    {"slice", K::Slice, 1, R::Promote, "", nullptr, nullptr, kSlice},
    {"matmul", K::Matmul, 2, R::Promote, "", nullptr, nullptr, {}},
    {"full", K::Full, 1, R::Attribute, "", nullptr, nullptr, kFull},
    {"iota", K::Iota, 0, R::Promote, "", nullptr, nullptr, kIota},
    // Operand 1 of pad is the scalar put where the padded tensor has no element of the operand.
    {"flip", K::Index, 1, R::Promote, "", nullptr, nullptr, kAxes},
    {"pad", K::Index, 2, R::Promote, "", nullptr, nullptr, kPad},
    {"take", K::Index, 2, R::Promote, "", nullptr, nullptr, kAxis},
    {"take_along_axis", K::Index, 2, R::Promote, "", nullptr, nullptr, kAxis},
    {"cumsum", K::Scan, 1, R::Promote, "", nullptr, nullptr, kAxis},
    {"argsort", K::Scan, 1, R::Promote, "", nullptr, nullptr, kArgsort},
    {"scatter", K::Scatter, 3, R::Promote, "", nullptr, nullptr, kAxis},
    {"scatter_add", K::Scatter, 3, R::Promote, "", nullptr, nullptr, kAxis},
    {"set", K::Set, 1, R::Promote, "", nullptr, nullptr, {}},
};

}  // namespace

std::span<const OpDef> structuralOps() { return kStructuralRows; }

}  // namespace heddle::op_rows
