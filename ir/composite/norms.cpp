// Softmax and normalizations.
#include "ir/composite/norms.h"

#include <algorithm>
#include <limits>

#include "ir/base/check.h"
#include "ir/composite/composite.h"

namespace heddle {

using composite::Result;
using composite::Term;

namespace composite {

Axes lastAxes(FusionBuilder& b, std::string_view op_name, Term x, ValueId weight, int64_t dims) {
  const auto rank = static_cast<int64_t>(x.rank());
  if (dims == 0) {
    dims = weight == kNoValue ? 1 : static_cast<int64_t>(b.tensorOf(op_name, weight).rank());
  }
  HEDDLE_USER_CHECK(dims >= 1 && dims <= rank, "{}: cannot normalize the last {} of the axes of {}",
                    b.where(op_name), dims, b.typeOf(x.id));
  Axes axes;
  for (int64_t axis = rank - dims; axis < rank; ++axis) axes.push_back(axis);
  return axes;
}

Term lastParameter(FusionBuilder& b, std::string_view op_name, Term x, ValueId parameter,
                   const Axes& axes) {
  HEDDLE_USER_CHECK(b.tensorOf(op_name, parameter).rank() == axes.size(),
                    "{}: {} does not have the last {} axes of {}", b.where(op_name),
                    b.typeOf(parameter), axes.size(), b.typeOf(x.id));
  return widen(parameterOf(b, op_name, x, parameter, static_cast<int64_t>(x.rank() - axes.size())));
}

Term channelParameter(FusionBuilder& b, std::string_view op_name, Term x, ValueId parameter) {
  const size_t rank = b.tensorOf(op_name, parameter).rank();
  HEDDLE_USER_CHECK(rank == 1, "{}: {} must have one axis, the channels", b.where(op_name),
                    b.typeOf(parameter));
  const Term term = widen(parameterOf(b, op_name, x, parameter, 1));
  return broadcast(term, channelRest(x.rank()));
}

Axes channelRest(size_t rank) {
  Axes axes = {0};
  for (size_t axis = 2; axis < rank; ++axis) axes.push_back(static_cast<int64_t>(axis));
  return axes;
}

Normal normalOf(Term wide, const Axes& axes, double eps, bool keepdim) {
  auto spread = [&](Term statistic) { return keepdim ? statistic : broadcast(statistic, axes); };
  // Divide by the unsharded extent, so that the mean does not depend on the mesh.
  const Term n = count(wide, axes);
  const Term mean = sum(wide, axes, keepdim) / n;
  const Term centered = wide - spread(mean);
  const Term variance = sum(centered * centered, axes, keepdim) / n;
  const Term scale = spread(rsqrt(variance + eps));
  return {mean, variance, scale, centered * scale, n};
}

double epsilonOf(DType dtype) {
  return dtype == DType::F64 ? std::numeric_limits<double>::epsilon()
                             : std::numeric_limits<float>::epsilon();
}

}  // namespace composite

ValueId softmax(FusionBuilder& b, ValueId x, int64_t axis) {
  Result result(b);
  const Term value = composite::floatOperand(b, "softmax", x);
  const Axes over = composite::lineOf(b, "softmax", value, axis);
  const Term wide = composite::widen(value);
  const Term top = composite::max(wide, over);
  const Term e = composite::exp(wide - top);
  return result(e / composite::sum(e, over), value.dtype());
}

ValueId logSoftmax(FusionBuilder& b, ValueId x, int64_t axis) {
  Result result(b);
  const Term value = composite::floatOperand(b, "log_softmax", x);
  const Axes over = composite::lineOf(b, "log_softmax", value, axis);
  return result(composite::logProbabilities(composite::widen(value), over), value.dtype());
}

composite::Term composite::logProbabilities(Term wide, const Axes& over) {
  const Term lowered = wide - max(wide, over);
  return lowered - log(sum(exp(lowered), over));
}

ValueId layerNorm(FusionBuilder& b, ValueId x, ValueId weight, ValueId bias, double eps,
                  int64_t dims) {
  Result result(b);
  const Term value = composite::floatOperand(b, "layer_norm", x);
  const Axes over = composite::lastAxes(b, "layer_norm", value, weight, dims);
  Term y = composite::normalOf(composite::widen(value), over, eps).normal;
  if (weight != kNoValue) y = y * composite::lastParameter(b, "layer_norm", value, weight, over);
  if (bias != kNoValue) y = y + composite::lastParameter(b, "layer_norm", value, bias, over);
  return result(y, value.dtype());
}

ValueId rmsNorm(FusionBuilder& b, ValueId x, ValueId weight, std::optional<double> eps,
                int64_t dims) {
  Result result(b);
  const Term value = composite::floatOperand(b, "rms_norm", x);
  const Axes over = composite::lastAxes(b, "rms_norm", value, weight, dims);
  const Term wide = composite::widen(value);
  const Term square = composite::mean(wide * wide, over);
  Term y = wide * composite::rsqrt(square + eps.value_or(composite::epsilonOf(value.dtype())));
  if (weight != kNoValue) y = y * composite::lastParameter(b, "rms_norm", value, weight, over);
  return result(y, value.dtype());
}

ValueId groupNorm(FusionBuilder& b, ValueId x, int64_t groups, ValueId weight, ValueId bias,
                  double eps) {
  Result result(b);
  const Term value = composite::floatOperand(b, "group_norm", x);
  HEDDLE_USER_CHECK(value.rank() >= 2, "{}: {} needs two axes or more", b.where("group_norm"),
                    b.typeOf(x));
  const Size channels = value.extent(1);
  HEDDLE_USER_CHECK(groups > 0 && (!channels.isConstant() || channels.constant() % groups == 0),
                    "{}: the channels of {} cannot be split into {} groups", b.where("group_norm"),
                    b.typeOf(x), groups);
  const std::vector<Size> sizes = value.tensor().sizes();
  std::vector<Size> grouped = sizes;
  grouped[1] = Size::floorDiv(channels, groups);
  grouped.insert(grouped.begin() + 1, Size(groups));
  const Term parts{&b, b.reshape(composite::widen(value).id, grouped, true)};
  Axes over;
  for (size_t axis = 2; axis < grouped.size(); ++axis) over.push_back(static_cast<int64_t>(axis));
  Term y = composite::normalOf(parts, over, eps).normal;
  y.id = b.reshape(y.id, sizes);
  if (weight != kNoValue) y = y * composite::channelParameter(b, "group_norm", value, weight);
  if (bias != kNoValue) y = y + composite::channelParameter(b, "group_norm", value, bias);
  return result(y, value.dtype());
}

BatchNorm batchNorm(FusionBuilder& b, ValueId x, ValueId running_mean, ValueId running_var,
                    ValueId weight, ValueId bias, double momentum, double eps) {
  Result result(b);
  const Term value = composite::channelOperand(b, "batch_norm", x);
  const Axes over = composite::channelRest(value.rank());
  const composite::Normal normal = composite::normalOf(composite::widen(value), over, eps, false);
  const bool never_empty = std::all_of(over.begin(), over.end(), [&](int64_t axis) {
    const Size extent = value.extent(axis);
    return extent.isConstant() && extent.constant() > 0;
  });
  Term y = normal.normal;
  if (weight != kNoValue) y = y * composite::channelParameter(b, "batch_norm", value, weight);
  if (bias != kNoValue) y = y + composite::channelParameter(b, "batch_norm", value, bias);

  auto updated = [&](ValueId running, Term now) {
    const Term old = composite::widen(composite::parameterOf(b, "batch_norm", value, running, 1));
    HEDDLE_USER_CHECK(old.rank() == 1, "{}: {} must have one axis, the channels",
                      b.where("batch_norm"), b.typeOf(running));
    Term mixed = old * (1 - momentum) + now * momentum;
    // An empty batch has no statistics, so keep the old statistics.
    if (!never_empty) {
      const Term empty = composite::call("eq", {normal.n, composite::constant(b, int64_t{0})});
      mixed = composite::where(empty, old, mixed);
    }
    return composite::cast(mixed, b.fusion().tensor(running).dtype).id;
  };
  const Term n = composite::cast(normal.n, DType::F64);
  const Term unbiased = normal.variance * (n / (n - 1.0));
  const ValueId new_mean = updated(running_mean, normal.mean);
  const ValueId new_var = updated(running_var, unbiased);
  return {result(y, value.dtype()), new_mean, new_var};
}

composite::Term composite::channelOperand(FusionBuilder& b, std::string_view op_name, ValueId x) {
  const Term value = floatOperand(b, op_name, x);
  HEDDLE_USER_CHECK(value.rank() >= 2, "{}: {} needs two axes or more", b.where(op_name),
                    b.typeOf(x));
  Size elements(1);
  for (int64_t axis : channelRest(value.rank())) {
    elements = elements * value.extent(axis);
  }
  HEDDLE_USER_CHECK(!elements.isConstant(1),
                    "{}: {} has one element per channel, but the variance needs more",
                    b.where(op_name), b.typeOf(x));
  const Size two(2);
  guardSize(b, Size::mod(Size::min(elements, two), two), 0,
            fmt::format("{}: {} must not have one element per channel, {}", b.where(op_name),
                        b.typeOf(x), elements.str()));
  return value;
}

}  // namespace heddle
