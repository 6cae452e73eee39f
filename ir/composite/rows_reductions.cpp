#include "ir/composite/rows.h"

namespace heddle::composite_rows {
namespace {

constexpr AttrSpec kReduceAttrs[] = {{"axes", AttrType::Ints, false},
                                     {"keepdim", AttrType::Bool, false}};
constexpr AttrSpec kVarAttrs[] = {{"axes", AttrType::Ints, false},
                                  {"correction", AttrType::Float, false},
                                  {"keepdim", AttrType::Bool, false}};
constexpr AttrSpec kArgAttrs[] = {{"axis", AttrType::Int, false},
                                  {"keepdim", AttrType::Bool, false}};

Axes axes(A a) { return get<Axes>(a, "axes", {}); }
bool keepdim(A a) { return get(a, "keepdim", false); }
double correction(A a) { return get(a, "correction", 1.0); }

template <ValueId (*Reduce)(FusionBuilder&, ValueId, const Axes&, bool)>
Operands over(B b, V v, A a) {
  return {Reduce(b, v[0], axes(a), keepdim(a))};
}

// In the text form, `axes=[]` means no axes for `any` and `all`, as in PyTorch. For all other
// reductions it means all axes.
Operands truthOver(B b, V v, A a, const char* op_name, decltype(&any) reduce) {
  const std::optional<Axes> given = maybe<Axes>(a, "axes");
  if (!given || !given->empty()) return {reduce(b, v[0], axes(a), keepdim(a))};
  b.tensorOf(op_name, v[0]);
  return {b.cast(v[0], DType::Bool)};
}

Operands varMeanRow(B b, V v, A a) {
  const VarMean r = varMean(b, v[0], axes(a), correction(a), keepdim(a));
  return {r.var, r.mean};
}

Operands welfordRow(B b, V v, A a) {
  const Welford r = welford(b, v[0], axes(a), keepdim(a));
  return {r.average, r.m2, r.count};
}

const CompositeDef kReductions[] = {
    {"mean", "arithmetic mean over axes (none: all)", 1, 0, kReduceAttrs, over<mean>},
    {"var", "variance over axes, divided by n - correction (default 1)", 1, 0, kVarAttrs,
     [](B b, V v, A a) { return Operands{var(b, v[0], axes(a), correction(a), keepdim(a))}; }},
    {"std", "standard deviation over axes: the root of var, with correction (default 1)", 1, 0,
     kVarAttrs,
     [](B b, V v, A a) { return Operands{stddev(b, v[0], axes(a), correction(a), keepdim(a))}; }},
    {"var_mean",
     "variance and mean over axes: two results. The second result equals `mean`. For a tensor "
     "with infinities, PyTorch's var_mean gives NaN as the mean",
     1, 0, kVarAttrs, varMeanRow},
    {"welford",
     "mean, sum of squared differences from it, and count (i64), over axes: three results", 1, 0,
     kReduceAttrs, welfordRow},
    {"amax", "maximum over axes (none: all), NaN if an element is NaN", 1, 0, kReduceAttrs,
     over<amax>},
    {"amin", "minimum over axes (none: all), NaN if an element is NaN", 1, 0, kReduceAttrs,
     over<amin>},
    {"any",
     "whether any element is not zero; NaN is not zero. axes=[] tests each element by itself. The "
     "result is always bool; PyTorch gives u8 for u8",
     1, 0, kReduceAttrs, [](B b, V v, A a) { return truthOver(b, v, a, "any", any); }},
    {"all", "whether no element is zero; axes, NaN and types as in any", 1, 0, kReduceAttrs,
     [](B b, V v, A a) { return truthOver(b, v, a, "all", all); }},
    {"argmax",
     "index of the first maximum, or of the first NaN, along an axis; without an axis over all "
     "elements in row-major order",
     1, 0, kArgAttrs,
     [](B b, V v, A a) {
       return Operands{argmax(b, v[0], maybe<int64_t>(a, "axis"), keepdim(a))};
     }},
    {"argmin",
     "index of the first minimum, or of the first NaN, along an axis; without an axis over all "
     "elements in row-major order",
     1, 0, kArgAttrs,
     [](B b, V v, A a) {
       return Operands{argmin(b, v[0], maybe<int64_t>(a, "axis"), keepdim(a))};
     }},
    {"logsumexp", "log of the sum of exponentials, without overflow, over axes (none: all)", 1, 0,
     kReduceAttrs, over<logsumexp>},
};

}  // namespace

std::span<const CompositeDef> reductions() { return kReductions; }

}  // namespace heddle::composite_rows
