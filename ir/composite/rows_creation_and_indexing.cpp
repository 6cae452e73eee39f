#include "ir/composite/rows.h"

namespace heddle::composite_rows {
namespace {

constexpr AttrSpec kNew[] = {{"sizes", AttrType::Sizes}, {"dtype", AttrType::DType, false}};
constexpr AttrSpec kArange[] = {{"start", AttrType::Number, false},
                                {"stop", AttrType::Number},
                                {"step", AttrType::Number, false},
                                {"dtype", AttrType::DType, false}};
constexpr AttrSpec kDiagonal[] = {{"diagonal", AttrType::Size, false}};
constexpr AttrSpec kOneHot[] = {{"num_classes", AttrType::Int}};
constexpr AttrSpec kIndexAxis[] = {{"axis", AttrType::Int}};
constexpr AttrSpec kSort[] = {{"axis", AttrType::Int, false},
                              {"descending", AttrType::Bool, false}};
constexpr AttrSpec kTopk[] = {{"k", AttrType::Size},
                              {"axis", AttrType::Int, false},
                              {"largest", AttrType::Bool, false},
                              {"most", AttrType::Int, false}};

std::vector<Size> sizes(A a) { return need<std::vector<Size>>(a, "sizes"); }
DType dtype(A a) { return get(a, "dtype", DType::F32); }

ArangeBound number(A a, std::string_view name, Size otherwise) {
  for (const auto& [key, value] : a) {
    if (key != name) continue;
    if (const double* real = std::get_if<double>(&value)) return *real;
    return std::get<std::vector<Size>>(value).at(0);
  }
  return otherwise;
}

Operands arangeRow(B b, V, A a) {
  return {arange(b, number(a, "start", Size(0)), number(a, "stop", Size(0)),
                 number(a, "step", Size(1)), maybe<DType>(a, "dtype"))};
}

Operands sortRow(B b, V v, A a) {
  const Sorted r = sort(b, v[0], get<int64_t>(a, "axis", -1), get(a, "descending", false));
  return {r.values, r.indices};
}

Operands topkRow(B b, V v, A a) {
  const Sorted r = topk(b, v[0], needSize(a, "k"), get<int64_t>(a, "axis", -1),
                        get(a, "largest", true), maybe<int64_t>(a, "most"));
  return {r.values, r.indices};
}

const CompositeDef kPlaces[] = {
    {"zeros", "a new tensor of zeros (f32)", 0, 0, kNew,
     [](B b, V, A a) { return Operands{zeros(b, sizes(a), dtype(a))}; }},
    {"ones", "a new tensor of ones (f32)", 0, 0, kNew,
     [](B b, V, A a) { return Operands{ones(b, sizes(a), dtype(a))}; }},
    {"arange",
     "the numbers start, start + step, ... before stop. Defaults: start 0, step 1. The type is i64 "
     "if all three are integers, else f32. Computes in i64 or f64. Bounds may contain scalars, as "
     "in stop=%n; the number of elements is then 0 if step does not lead from start to stop",
     0, 0, kArange, arangeRow},
    {"eye", "ones on the diagonal, zeros elsewhere (f32); one size gives a square, two a matrix", 0,
     0, kNew, [](B b, V, A a) { return Operands{eye(b, sizes(a), dtype(a))}; }},
    {"tril", "zeros above a diagonal (0) of the last two axes", 1, 0, kDiagonal,
     [](B b, V v, A a) {
       return Operands{tril(b, v[0], maybeSize(a, "diagonal").value_or(Size(0)))};
     }},
    {"triu", "zeros below a diagonal (0) of the last two axes", 1, 0, kDiagonal,
     [](B b, V v, A a) {
       return Operands{triu(b, v[0], maybeSize(a, "diagonal").value_or(Size(0)))};
     }},
    {"one_hot",
     "a new last axis with 1 at the class, else 0 (i64). A class out of range gives only zeros; "
     "PyTorch raises an error. num_classes is required, because shapes never depend on values",
     1, 0, kOneHot,
     [](B b, V v, A a) { return Operands{oneHot(b, v[0], need<int64_t>(a, "num_classes"))}; }},
    {"index_select",
     "slices of operand 0 along an axis, at a list of indices. An index out of range reads NaN, or "
     "0 for integers and bools; PyTorch raises an error",
     2, 0, kIndexAxis,
     [](B b, V v, A a) { return Operands{indexSelect(b, v[0], v[1], need<int64_t>(a, "axis"))}; }},
    {"embedding",
     "rows of weight[v, d]: (index, weight). An index out of range reads NaN, or 0 for integers "
     "and bools; PyTorch raises an error",
     2,
     0,
     {},
     [](B b, V v, A) { return Operands{embedding(b, v[0], v[1])}; }},
    {"gather",
     "elements of operand 0 at the indices in operand 1 along an axis. Operand 1 may be smaller "
     "along the other axes. An index out of range reads as in index_select",
     2, 0, kIndexAxis,
     [](B b, V v, A a) { return Operands{gather(b, v[0], v[1], need<int64_t>(a, "axis"))}; }},
    {"sort",
     "values sorted along an axis (-1) and their indices: two results. Always stable; NaN is above "
     "every number",
     1, 0, kSort, sortRow},
    {"topk",
     "the k largest (or smallest) values along an axis (-1) and their indices: two results. "
     "Sorted; equal values are in the order of their indices. If k contains a scalar, `most` is an "
     "upper bound of k, which every run checks. heddle then sorts and stores only `most` "
     "indices",
     1, 0, kTopk, topkRow},
};

}  // namespace

std::span<const CompositeDef> places() { return kPlaces; }

}  // namespace heddle::composite_rows
