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
constexpr AttrSpec kProduct[] = {{"dtype", AttrType::DType, false},
                                 {"activation", AttrType::Name, false},
                                 {"precision", AttrType::Name, false}};
constexpr AttrSpec kFull[] = {{"sizes", AttrType::Sizes}, {"dtype", AttrType::DType}};
constexpr AttrSpec kIota[] = {{"sizes", AttrType::Sizes}, {"axis", AttrType::Int}};
constexpr AttrSpec kPad[] = {{"lows", AttrType::Ints}, {"highs", AttrType::Ints}};
constexpr AttrSpec kArgsort[] = {{"axis", AttrType::Int},
                                 {"descending", AttrType::Bool, false},
                                 {"first", AttrType::Int, false}};

// matmul, and linear with its bias that may be left out.
constexpr OpDef product(std::string_view name, int optional_operands, std::string_view note) {
  OpDef row{name, K::Matmul, 2, R::Promote, "", nullptr, nullptr, kProduct};
  row.optional_operands = optional_operands;
  row.note = note;
  return row;
}

constexpr OpDef kStructuralRows[] = {
    {"constant", K::Constant, 0, R::Promote, "", nullptr, nullptr, kValue},
    noted("A scalar: the unsharded extent of an axis",
          {"size", K::SizeOf, 1, R::Promote, "", nullptr, nullptr, kAxis}),
    noted("New axes of extent 1 at the given places of the result",
          {"broadcast", K::Broadcast, 1, R::Promote, "", nullptr, nullptr, kAxes}),
    {"expand", K::Expand, 1, R::Promote, "", nullptr, nullptr, kSizes},
    {"reshape", K::Reshape, 1, R::Promote, "", nullptr, nullptr, kSizes},
    {"permute", K::Permute, 1, R::Promote, "", nullptr, nullptr, kAxes},
    {"slice", K::Slice, 1, R::Promote, "", nullptr, nullptr, kSlice},
    product("matmul", 0,
            "Operands of one dtype; accumulated in f32 or wider and rounded once, behind "
            "`activation` (none, relu, gelu_tanh); `precision=tf32` for f32; integers wrap; of f8 "
            "operands, which may be of two f8 types, `dtype` is f32, bf16 or f16, and what they "
            "are scaled by is multiplied to the result"),
    product("linear", 1, "x[..., k] by weight[n, k] transposed, plus bias[n]; else as matmul"),
    noted("Operand: the scalar in every element",
          {"full", K::Full, 1, R::Attribute, "", nullptr, nullptr, kFull}),
    noted("The index of each element along the axis, in the unsharded tensor",
          {"iota", K::Iota, 0, R::Promote, "", nullptr, nullptr, kIota}),
    {"flip", K::Index, 1, R::Promote, "", nullptr, nullptr, kAxes},
    noted("Operands: x, fill; negative numbers cut",
          {"pad", K::Index, 2, R::Promote, "", nullptr, nullptr, kPad}),
    noted("PyTorch's index_select, with an index of any rank; an index outside reads NaN, or 0 of "
          "integers and bools, where PyTorch raises",
          {"take", K::Index, 2, R::Promote, "", nullptr, nullptr, kAxis}),
    noted("PyTorch's gather; an index outside as in take",
          {"take_along_axis", K::Index, 2, R::Promote, "", nullptr, nullptr, kAxis}),
    noted("Integers and bools give i64",
          {"cumsum", K::Scan, 1, R::Promote, "", nullptr, nullptr, kAxis}),
    noted("Stable; NaN is above every number; with `first` no more places of a line need be in "
          "order, "
          "the others hold the rest of the indices",
          {"argsort", K::Scan, 1, R::Promote, "", nullptr, nullptr, kArgsort}),
    noted("Operands: x, index, source; of several at one place the last in row-major order wins; "
          "an index outside puts nothing, where PyTorch raises",
          {"scatter", K::Scatter, 3, R::Promote, "", nullptr, nullptr, kAxis}),
    noted("Operands: x, index, source; added in row-major order, so always the same bits; an index "
          "outside puts nothing",
          {"scatter_add", K::Scatter, 3, R::Promote, "", nullptr, nullptr, kAxis}),
    noted("The same values, perhaps in another sharding or layout",
          {"set", K::Set, 1, R::Promote, "", nullptr, nullptr, {}}),
};

}  // namespace

std::span<const OpDef> structuralOps() { return kStructuralRows; }

}  // namespace heddle::op_rows
