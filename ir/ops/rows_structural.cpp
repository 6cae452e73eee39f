// Leaves, shape ops and what libraries compute.
#include "ir/ops/rows.h"

namespace heddle::op_rows {
namespace {

constexpr AttrSpec kValue[] = {{"value", AttrType::Scalar}};
constexpr AttrSpec kAxis[] = {{"axis", AttrType::Int}};
constexpr AttrSpec kAxes[] = {{"axes", AttrType::Ints}};
constexpr AttrSpec kSizes[] = {{"sizes", AttrType::Sizes}};
constexpr AttrSpec kReshape[] = {{"sizes", AttrType::Sizes},
                                 {"gather_uneven", AttrType::Bool, false}};
constexpr AttrSpec kSlice[] = {
    {"starts", AttrType::Sizes}, {"stops", AttrType::Sizes}, {"steps", AttrType::Ints, false}};
constexpr AttrSpec kProduct[] = {{"dtype", AttrType::DType, false},
                                 {"activation", AttrType::Name, false},
                                 {"precision", AttrType::Name, false}};
constexpr AttrSpec kFull[] = {{"sizes", AttrType::Sizes}, {"dtype", AttrType::DType}};
constexpr AttrSpec kIota[] = {{"sizes", AttrType::Sizes}, {"axis", AttrType::Int}};
constexpr AttrSpec kPad[] = {
    {"lows", AttrType::Ints}, {"highs", AttrType::Ints}, {"mode", AttrType::Name, false}};
constexpr Scalar kNoFill[] = {int64_t{0}};
constexpr AttrSpec kScatter[] = {{"axis", AttrType::Int}, {"stretch", AttrType::Bool, false}};
constexpr AttrSpec kArgsort[] = {{"axis", AttrType::Int, false},
                                 {"descending", AttrType::Bool, false},
                                 {"first", AttrType::Int, false}};

constexpr OpDef padding() {
  OpDef row{"pad", K::Index, 2, R::Promote, "", nullptr, nullptr, kPad};
  row.defaults = kNoFill;
  row.note =
      "Operands: x, fill = 0; lows and highs of every axis in order, where PyTorch lists pairs "
      "from "
      "the last; negative numbers cut; mode=constant only";
  return row;
}

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
    noted("New axes in front; -1 leaves an extent as it is",
          {"expand", K::Expand, 1, R::Promote, "", nullptr, nullptr, kSizes}),
    noted(
        "One size may be -1: what the others leave; `gather_uneven`: a sharded axis that it splits "
        "unevenly is gathered rather than refused",
        {"reshape", K::Reshape, 1, R::Promote, "", nullptr, nullptr, kReshape}),
    {"permute", K::Permute, 1, R::Promote, "", nullptr, nullptr, kAxes},
    {"slice", K::Slice, 1, R::Promote, "", nullptr, nullptr, kSlice},
    product("matmul", 0,
            "Operands of one dtype; accumulated in f32 or wider and rounded once, behind "
            "`activation` (none, relu, gelu_tanh); `precision=tf32` for f32; integers wrap, before "
            "the activation; of bools an OR of ANDs; of f8 operands the result is of their type, "
            "or of `dtype`, f32, bf16 or f16, which two f8 types need; what they are scaled by is "
            "multiplied to the result"),
    product("linear", 1,
            "x[..., k] by weight[n, k] transposed, plus bias[n] (one element: for every n); a "
            "weight[k] gives no axis n and takes no bias; else as matmul"),
    noted("Operand: the scalar in every element",
          {"full", K::Full, 1, R::Attribute, "", nullptr, nullptr, kFull}),
    noted("The index of each element along the axis, in the unsharded tensor",
          {"iota", K::Iota, 0, R::Promote, "", nullptr, nullptr, kIota}),
    {"flip", K::Index, 1, R::Promote, "", nullptr, nullptr, kAxes},
    padding(),
    noted("PyTorch's index_select, with an index of any rank; an index outside reads NaN, or 0 of "
          "integers and bools, where PyTorch raises",
          {"take", K::Index, 2, R::Promote, "", nullptr, nullptr, kAxis}),
    noted("PyTorch's gather: but along the axis the index may be smaller than x, where both sizes "
          "are "
          "numbers (take_along_dim would stretch it); an index outside as in take",
          {"take_along_axis", K::Index, 2, R::Promote, "", nullptr, nullptr, kAxis}),
    noted("Integers and bools give i64",
          {"cumsum", K::Scan, 1, R::Promote, "", nullptr, nullptr, kAxis}),
    noted("axis -1 unless given; stable; NaN is above every number; with `first` a line of the "
          "result has only so many places, if there are as many",
          {"argsort", K::Scan, 1, R::Promote, "", nullptr, nullptr, kArgsort}),
    noted("Operands: x, index, source; of several at one place the last in row-major order wins; "
          "an index outside puts nothing, where PyTorch raises; the index may be smaller than the "
          "source, and but along the axis than x, where these sizes are numbers (else they are "
          "equal);"
          " with `stretch` an axis of extent 1 of the index stands for all of the source's "
          "(index_copy)",
          {"scatter", K::Scatter, 3, R::Promote, "", nullptr, nullptr, kScatter}),
    noted("As scatter; added in row-major order, so always the same bits; with `stretch` PyTorch's "
          "index_add",
          {"scatter_add", K::Scatter, 3, R::Promote, "", nullptr, nullptr, kScatter}),
    noted("The same values, perhaps in another sharding or layout",
          {"set", K::Set, 1, R::Promote, "", nullptr, nullptr, {}}),
};

}  // namespace

std::span<const OpDef> structuralOps() { return kStructuralRows; }

}  // namespace heddle::op_rows
