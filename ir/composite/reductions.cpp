// Reductions that consist of sum, max and min.
#include <cmath>
#include <limits>

#include "ir/base/check.h"
#include "ir/composite/composite.h"
#include "ir/composite/terms.h"

namespace heddle {
namespace {

using composite::Result;
using composite::Term;

struct Moments {
  Term mean;  // in the type that widen() gives (ir/composite/terms.h)
  Term m2;    // sum of squared differences from the mean
  Term n;     // number of elements per mean
};

Moments momentsOf(Term x, const Axes& axes, bool keepdim) {
  const Term wide = composite::widen(x);
  const Term n = composite::count(x, axes);
  const Term mean = composite::sum(wide, axes, keepdim) / n;
  const Term centered = wide - (keepdim ? mean : composite::broadcast(mean, axes));
  return {mean, composite::sum(centered * centered, axes, keepdim), n};
}

Term varOf(const Moments& moments, double correction) {
  FusionBuilder& b = *moments.n.b;
  const Term divisor = moments.n - correction;
  return moments.m2 / composite::call("maximum", {divisor, composite::constant(b, 0.0)});
}

ValueId overBools(FusionBuilder& b, const char* op_name, const char* reduction, ValueId x,
                  const Axes& axes, bool keepdim) {
  Result result(b);
  b.tensorOf(op_name, x);
  const Term truth = composite::cast({&b, x}, DType::Bool);
  return result(b.reduce(reduction, truth.id, composite::axesOf(b, op_name, truth, axes), keepdim));
}

Axes extremeAxes(FusionBuilder& b, const char* op_name, ValueId x, const Axes& axes) {
  b.tensorOf(op_name, x);
  composite::refuseFloat8(b, op_name, x);
  return composite::axesOf(b, op_name, {&b, x}, axes);
}

ValueId extremePosition(FusionBuilder& b, const char* op_name, const char* reduction, ValueId value,
                        std::optional<int64_t> axis, bool keepdim) {
  Result result(b);
  Term x{&b, value};
  const size_t rank = b.tensorOf(op_name, value).rank();
  composite::refuseFloat8(b, op_name, value);
  if (axis && rank == 0) {
    composite::lineOf(b, op_name, x, *axis);
    axis.reset();
  }
  if (!axis && rank != 1) x.id = b.reshape(value, {product(x.tensor().sizes())});
  const int64_t along = axis ? composite::axisOf(b, op_name, x, *axis) : 0;
  HEDDLE_USER_CHECK(!x.extent(along).isConstant(0), "{}: {} has no elements along axis {}",
                    b.where(op_name), b.typeOf(value), along);
  composite::guardSize(b, Size::min(x.extent(along), Size(1)), 1,
                       fmt::format("{}: {} must have elements along axis {}", b.where(op_name),
                                   b.typeOf(value), along));
  const Term extreme{&b, b.reduce(reduction, x.id, {along}, true)};
  Term hit = composite::call("eq", {x, extreme});
  // If an element is NaN, the extreme is NaN too. NaN equals no element, so `hit` must also contain
  // the elements that are NaN.
  if (isFloat(x.dtype())) {
    hit = composite::call("logical_or", {hit, composite::call("isnan", x)});
  }
  const Term position = composite::positions(b, x.tensor().sizes(), along);
  const Term never = composite::constant(b, std::numeric_limits<int64_t>::max());
  const Term positions = composite::where(hit, position, never);
  const bool spread = !axis && keepdim;  // the result has one element and the operand's rank
  Term least{&b, b.reduce("min", positions.id, {along}, keepdim && !spread)};
  if (spread) least = composite::broadcast(least, rowMajor(rank));
  return result(least);
}

}  // namespace

ValueId mean(FusionBuilder& b, ValueId x, const Axes& axes, bool keepdim) {
  Result result(b);
  const Term value = composite::floatOperand(b, "mean", x);
  const Axes over = composite::axesOf(b, "mean", value, axes);
  return result(composite::mean(composite::widen(value), over, keepdim), value.dtype());
}

ValueId var(FusionBuilder& b, ValueId x, const Axes& axes, double correction, bool keepdim) {
  Result result(b);
  const Term value = composite::floatOperand(b, "var", x);
  const Axes over = composite::axesOf(b, "var", value, axes);
  return result(varOf(momentsOf(value, over, keepdim), correction), value.dtype());
}

ValueId stddev(FusionBuilder& b, ValueId x, const Axes& axes, double correction, bool keepdim) {
  Result result(b);
  const Term value = composite::floatOperand(b, "std", x);
  const Axes over = composite::axesOf(b, "std", value, axes);
  const Term variance = varOf(momentsOf(value, over, keepdim), correction);
  return result(composite::call("sqrt", variance), value.dtype());
}

VarMean varMean(FusionBuilder& b, ValueId x, const Axes& axes, double correction, bool keepdim) {
  Result result(b);
  const Term value = composite::floatOperand(b, "var_mean", x);
  const Axes over = composite::axesOf(b, "var_mean", value, axes);
  const Moments moments = momentsOf(value, over, keepdim);
  const ValueId variance = result(varOf(moments, correction), value.dtype());
  return {variance, composite::cast(moments.mean, value.dtype()).id};
}

Welford welford(FusionBuilder& b, ValueId x, const Axes& axes, bool keepdim) {
  Result result(b);
  const Term value = composite::floatOperand(b, "welford", x);
  const Axes over = composite::axesOf(b, "welford", value, axes);
  const Moments moments = momentsOf(value, over, keepdim);
  const ValueId average = result(moments.mean, value.dtype());
  const ValueId m2 = composite::cast(moments.m2, value.dtype()).id;
  return {average, m2, b.full(moments.n.id, moments.mean.tensor().sizes(), DType::I64)};
}

ValueId amax(FusionBuilder& b, ValueId x, const Axes& axes, bool keepdim) {
  return b.reduce("max", x, extremeAxes(b, "amax", x, axes), keepdim);
}

ValueId amin(FusionBuilder& b, ValueId x, const Axes& axes, bool keepdim) {
  return b.reduce("min", x, extremeAxes(b, "amin", x, axes), keepdim);
}

ValueId any(FusionBuilder& b, ValueId x, const Axes& axes, bool keepdim) {
  return overBools(b, "any", "max", x, axes, keepdim);
}

ValueId all(FusionBuilder& b, ValueId x, const Axes& axes, bool keepdim) {
  return overBools(b, "all", "min", x, axes, keepdim);
}

ValueId argmax(FusionBuilder& b, ValueId x, std::optional<int64_t> axis, bool keepdim) {
  return extremePosition(b, "argmax", "max", x, axis, keepdim);
}

ValueId argmin(FusionBuilder& b, ValueId x, std::optional<int64_t> axis, bool keepdim) {
  return extremePosition(b, "argmin", "min", x, axis, keepdim);
}

ValueId logsumexp(FusionBuilder& b, ValueId x, const Axes& axes, bool keepdim) {
  Result result(b);
  const bool real = isFloat(b.tensorOf("logsumexp", x).dtype);
  const Term value =
      real ? composite::floatOperand(b, "logsumexp", x) : composite::cast({&b, x}, DType::F32);
  const Axes over = composite::axesOf(b, "logsumexp", value, axes);
  const Term wide = composite::widen(value);
  const Term top = composite::max(wide, over, keepdim);
  const Term infinite =
      composite::call("eq", {composite::call("abs", top),
                             composite::constant(b, std::numeric_limits<double>::infinity())});
  const Term shift = composite::where(infinite, composite::constant(b, 0.0), top);
  const Term lowered = wide - (keepdim ? shift : composite::broadcast(shift, over));
  const Term total = composite::sum(composite::exp(lowered), over, keepdim);
  return result(composite::log(total) + shift, value.dtype());
}

}  // namespace heddle
