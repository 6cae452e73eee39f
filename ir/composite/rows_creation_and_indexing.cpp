#include "ir/composite/rows.h"

namespace heddle::composite_rows {
namespace {

constexpr AttrSpec kNew[] = {{"sizes", AttrType::Sizes}, {"dtype", AttrType::DType, false}};
constexpr AttrSpec kArange[] = {{"start", AttrType::Scalar, false},
                                {"stop", AttrType::Scalar},
                                {"step", AttrType::Scalar, false},
                                {"dtype", AttrType::DType, false}};
constexpr AttrSpec kDiagonal[] = {{"diagonal", AttrType::Int, false}};
constexpr AttrSpec kOneHot[] = {{"num_classes", AttrType::Int}};
constexpr AttrSpec kIndexAxis[] = {{"axis", AttrType::Int}};
constexpr AttrSpec kSort[] = {{"axis", AttrType::Int, false},
                              {"descending", AttrType::Bool, false}};
constexpr AttrSpec kTopk[] = {
    {"k", AttrType::Int}, {"axis", AttrType::Int, false}, {"largest", AttrType::Bool, false}};

std::vector<Size> sizes(A a) { return need<std::vector<Size>>(a, "sizes"); }
DType dtype(A a) { return get(a, "dtype", DType::F32); }

Scalar number(A a, std::string_view name, Scalar otherwise) {
  for (const auto& [key, value] : a) {
    if (key != name) continue;
    if (const bool* truth = std::get_if<bool>(&value)) return static_cast<int64_t>(*truth);
    if (const int64_t* integer = std::get_if<int64_t>(&value)) return *integer;
    return std::get<double>(value);
  }
  return otherwise;
}

Operands arangeRow(B b, V, A a) {
  return {arange(b, number(a, "start", int64_t{0}), number(a, "stop", int64_t{0}),
                 number(a, "step", int64_t{1}), maybe<DType>(a, "dtype"))};
}

Operands sortRow(B b, V v, A a) {
  const Sorted r = sort(b, v[0], get<int64_t>(a, "axis", -1), get(a, "descending", false));
  return {r.values, r.indices};
}

Operands topkRow(B b, V v, A a) {
  const Sorted r =
      topk(b, v[0], need<int64_t>(a, "k"), get<int64_t>(a, "axis", -1), get(a, "largest", true));
  return {r.values, r.indices};
}

const CompositeDef kPlaces[] = {
    {"zeros", "a new tensor of zeros (f32)", 0, 0, kNew,
     [](B b, V, A a) { return Operands{zeros(b, sizes(a), dtype(a))}; }},
    {"ones", "a new tensor of ones (f32)", 0, 0, kNew,
     [](B b, V, A a) { return Operands{ones(b, sizes(a), dtype(a))}; }},
    {"arange",
     "start (0), start + step (1), ... before stop; i64 of integers, else f32; computed in i64 or "
     "f64",
     0, 0, kArange, arangeRow},
    {"eye", "ones on the diagonal of one size (a square) or two (f32)", 0, 0, kNew,
     [](B b, V, A a) { return Operands{eye(b, sizes(a), dtype(a))}; }},
    {"tril", "zero above a diagonal (0) of the last two axes", 1, 0, kDiagonal,
     [](B b, V v, A a) { return Operands{tril(b, v[0], get<int64_t>(a, "diagonal", 0))}; }},
    {"triu", "zero below a diagonal (0) of the last two axes", 1, 0, kDiagonal,
     [](B b, V v, A a) { return Operands{triu(b, v[0], get<int64_t>(a, "diagonal", 0))}; }},
    {"one_hot",
     "a new last axis: 1 at the class, else 0 (i64), and 0 everywhere of a class outside, where "
     "PyTorch raises; num_classes must be given, as no shape depends on values",
     1, 0, kOneHot,
     [](B b, V v, A a) { return Operands{oneHot(b, v[0], need<int64_t>(a, "num_classes"))}; }},
    {"index_select",
     "slices of operand 0 along an axis, by a list of indices; one outside reads NaN, or 0 of "
     "integers and bools, where PyTorch raises",
     2, 0, kIndexAxis,
     [](B b, V v, A a) { return Operands{indexSelect(b, v[0], v[1], need<int64_t>(a, "axis"))}; }},
    {"embedding",
     "embedding(index, weight): rows of weight[v, d]; a row outside is NaN, where PyTorch raises",
     2,
     0,
     {},
     [](B b, V v, A) { return Operands{embedding(b, v[0], v[1])}; }},
    {"gather",
     "elements of operand 0 along an axis, where operand 1 says, which may be smaller along the "
     "others; an index outside as in index_select",
     2, 0, kIndexAxis,
     [](B b, V v, A a) { return Operands{gather(b, v[0], v[1], need<int64_t>(a, "axis"))}; }},
    {"sort",
     "sorted values and their indices along an axis (-1): two results; always stable, NaN above "
     "every number",
     1, 0, kSort, sortRow},
    {"topk",
     "the k largest (or smallest) and their indices along an axis (-1), in order, equal values by "
     "their indices: two results",
     1, 0, kTopk, topkRow},
};

}  // namespace

std::span<const CompositeDef> places() { return kPlaces; }

}  // namespace heddle::composite_rows
