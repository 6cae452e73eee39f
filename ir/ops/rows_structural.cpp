// The rows of all ops that are neither pointwise nor reductions: constants, sizes, new tensors
// (full, iota), changes of shape, moves of elements, scans, scatters, matrix products and `set`.
#include "ir/ops/rows.h"

namespace heddle::op_rows {
namespace {

constexpr AttrSpec kValue[] = {{"value", AttrType::Literal}};
constexpr AttrSpec kAxis[] = {{"axis", AttrType::Int}};
constexpr AttrSpec kAxes[] = {{"axes", AttrType::Ints}};
constexpr AttrSpec kSizes[] = {{"sizes", AttrType::Sizes}};
constexpr AttrSpec kReshape[] = {{"sizes", AttrType::Sizes},
                                 {"gather_uneven", AttrType::Bool, false}};
constexpr AttrSpec kSlice[] = {
    {"starts", AttrType::Sizes}, {"stops", AttrType::Sizes}, {"steps", AttrType::Ints, false}};
constexpr AttrSpec kDiagonal[] = {{"offset", AttrType::Size, false},
                                  {"axis1", AttrType::Int, false},
                                  {"axis2", AttrType::Int, false}};
constexpr AttrSpec kProduct[] = {{"dtype", AttrType::DType, false},
                                 {"activation", AttrType::Name, false},
                                 {"precision", AttrType::Name, false}};
constexpr AttrSpec kFull[] = {{"sizes", AttrType::Sizes}, {"dtype", AttrType::DType}};
constexpr AttrSpec kIota[] = {{"sizes", AttrType::Sizes}, {"axis", AttrType::Int}};
constexpr AttrSpec kPad[] = {
    {"lows", AttrType::Sizes}, {"highs", AttrType::Sizes}, {"mode", AttrType::Name, false}};
constexpr Scalar kNoFill[] = {int64_t{0}};
constexpr AttrSpec kScatter[] = {{"axis", AttrType::Int}, {"stretch", AttrType::Bool, false}};
constexpr AttrSpec kArgsort[] = {{"axis", AttrType::Int, false},
                                 {"descending", AttrType::Bool, false},
                                 {"first", AttrType::Int, false}};

constexpr OpDef padding() {
  OpDef row{"pad", K::Index, 2, R::Promote, "", nullptr, nullptr, kPad};
  row.defaults = kNoFill;
  row.note =
      "Operands: x, fill = 0. `lows` and `highs` list all axes in order; PyTorch lists pairs from "
      "the last axis on. Negative numbers remove elements. Only mode=constant";
  return row;
}

// Returns the row of matmul or linear. linear has an optional operand, the bias.
constexpr OpDef product(std::string_view name, int optional_operands, std::string_view note) {
  OpDef row{name, K::Matmul, 2, R::Promote, "", nullptr, nullptr, kProduct};
  row.optional_operands = optional_operands;
  row.note = note;
  return row;
}

constexpr OpDef kStructuralRows[] = {
    {"constant", K::Constant, 0, R::Promote, "", nullptr, nullptr, kValue},
    noted("An i64 scalar: the unsharded extent of an axis",
          {"size", K::SizeOf, 1, R::Promote, "", nullptr, nullptr, kAxis}),
    noted("Inserts axes of extent 1 at the given positions of the result",
          {"broadcast", K::Broadcast, 1, R::Promote, "", nullptr, nullptr, kAxes}),
    noted("Stretches axes of extent 1 and adds new axes in front. -1 leaves an extent as it is",
          {"expand", K::Expand, 1, R::Promote, "", nullptr, nullptr, kSizes}),
    noted("One size may be -1 and follows from the others. With `gather_uneven` heddle gathers a "
          "sharded axis that the reshape splits unevenly. Without it, this is an error if the user "
          "sharded the axis and not the result",
          {"reshape", K::Reshape, 1, R::Promote, "", nullptr, nullptr, kReshape}),
    {"permute", K::Permute, 1, R::Promote, "", nullptr, nullptr, kAxes},
    {"slice", K::Slice, 1, R::Promote, "", nullptr, nullptr, kSlice},
    noted("The defaults are offset=0, axis1=0, axis2=1. An offset above 0 is above the main "
          "diagonal. The offset may be a scalar of a run",
          {"diagonal", K::Diagonal, 1, R::Promote, "", nullptr, nullptr, kDiagonal}),
    product("matmul", 0,
            "Operands of one dtype, or of two f8 types. Accumulates in f32 or wider, applies "
            "`activation` (none, relu, gelu_tanh), then rounds once. `precision=tf32`: for f32. "
            "Integers wrap before the activation. For bools, the product is an AND and the sum an "
            "OR. For f8 operands, the result has their type, or the type in `dtype`: f32, bf16 or "
            "f16. `dtype` is required if the operands have different f8 types. heddle applies no "
            "scales of f8 operands: multiply the result by them"),
    product("linear", 1,
            "x[..., k] times weight[n, k] transposed, plus bias[n]. A bias of one element is added "
            "for every n. A weight[k] gives a result without axis n and permits no bias. All other "
            "rules are those of matmul"),
    noted("Operand: a scalar, the value of every element",
          {"full", K::Full, 1, R::Attribute, "", nullptr, nullptr, kFull}),
    noted("The i64 index of each element along the axis, in the unsharded tensor",
          {"iota", K::Iota, 0, R::Promote, "", nullptr, nullptr, kIota}),
    {"flip", K::Index, 1, R::Promote, "", nullptr, nullptr, kAxes},
    padding(),
    noted("PyTorch's index_select, with an index of any number of axes. An index out of range "
          "reads NaN, or 0 for integers and bools; PyTorch raises an error",
          {"take", K::Index, 2, R::Promote, "", nullptr, nullptr, kAxis}),
    noted("PyTorch's gather. Along the other axes, the index may be smaller than x if neither "
          "size is symbolic; PyTorch's take_along_dim would stretch it. An index out of range "
          "reads as in take",
          {"take_along_axis", K::Index, 2, R::Promote, "", nullptr, nullptr, kAxis}),
    noted("Integers and bools give i64",
          {"cumsum", K::Scan, 1, R::Promote, "", nullptr, nullptr, kAxis}),
    noted("The default axis is -1. Stable; NaN is above every number. With `first` each line of "
          "the result has only that many indices, or all if there are fewer",
          {"argsort", K::Scan, 1, R::Promote, "", nullptr, nullptr, kArgsort}),
    noted("Operands: x, index, source. If several source elements have the same index, the "
          "last one in row-major order is stored. An element with an index out of range is not "
          "stored; PyTorch raises an error. The index may be smaller than the source and, "
          "along the other axes, smaller than x. Exception: two sizes must be equal if one "
          "of them is symbolic. With `stretch`, an axis of the index with extent 1 is stretched to "
          "the extent of the source (PyTorch's index_copy)",
          {"scatter", K::Scatter, 3, R::Promote, "", nullptr, nullptr, kScatter}),
    noted("As scatter, but adds in row-major order, so that the bits are always the same. With "
          "`stretch` it is PyTorch's index_add",
          {"scatter_add", K::Scatter, 3, R::Promote, "", nullptr, nullptr, kScatter}),
    noted("The same values; the sharding or layout may differ",
          {"set", K::Set, 1, R::Promote, "", nullptr, nullptr, {}}),
};

}  // namespace

std::span<const OpDef> structuralOps() { return kStructuralRows; }

}  // namespace heddle::op_rows
