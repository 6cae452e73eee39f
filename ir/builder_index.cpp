// FusionBuilder: new tensors, and elements at other places.
#include <algorithm>

#include "ir/builder.h"
#include "ir/error.h"

namespace heddle {
namespace {

Value placedResult(DType dtype, std::vector<IterDomain> domain) {
  Value value;
  value.tensor.dtype = dtype;
  value.tensor.domain = std::move(domain);
  return value;
}

std::vector<IterDomain> domainOf(const std::vector<Size>& sizes) {
  std::vector<IterDomain> domain;
  for (const Size& size : sizes) domain.push_back({size, IterKind::Iteration});
  return domain;
}

}  // namespace

ValueId FusionBuilder::full(ValueId scalar, std::vector<Size> sizes, DType dtype) {
  HEDDLE_USER_CHECK(fusion_.value(scalar).is_scalar, "{}: {} is a tensor, expected a scalar",
                    where("full"), typeOf(scalar));
  std::vector<IterDomain> domain = domainOf(sizes);
  return append(op("full"), {scalar}, {{"sizes", std::move(sizes)}, {"dtype", dtype}},
                placedResult(dtype, std::move(domain)));
}

ValueId FusionBuilder::iota(std::vector<Size> sizes, int64_t axis) {
  axis = normalizeAxis("iota", axis, sizes.size());
  std::vector<IterDomain> domain = domainOf(sizes);
  return append(op("iota"), {}, {{"sizes", std::move(sizes)}, {"axis", axis}},
                placedResult(DType::I64, std::move(domain)));
}

const TensorView& FusionBuilder::indexOf(std::string_view op_name, ValueId id) const {
  const TensorView& index = tensorOf(op_name, id);
  HEDDLE_USER_CHECK(index.dtype == DType::I64 || index.dtype == DType::I32,
                    "{}: the index {} must be i64 or i32", where(op_name), typeOf(id));
  return index;
}

void FusionBuilder::agree(std::string_view op_name, ValueId a, size_t a_axis, ValueId b,
                          size_t b_axis) {
  const Size& x = fusion_.tensor(a).domain[a_axis].extent;
  const Size& y = fusion_.tensor(b).domain[b_axis].extent;
  if (x == y) return;
  const std::string both = fmt::format("axis {} of {} and axis {} of {}, operands of {}", a_axis,
                                       typeOf(a), b_axis, typeOf(b), where(op_name));
  HEDDLE_USER_CHECK(!x.isConstant() || !y.isConstant(), "{}: shapes disagree, {} and {} ({})",
                    where(op_name), x.str(), y.str(), both);
  fusion_.guards.push_back({x, y, both});
}

ValueId FusionBuilder::flip(ValueId value, std::vector<int64_t> axes) {
  const TensorView tensor = tensorOf("flip", value);
  for (int64_t& axis : axes) axis = normalizeAxis("flip", axis, tensor.rank());
  std::sort(axes.begin(), axes.end());
  HEDDLE_USER_CHECK(std::adjacent_find(axes.begin(), axes.end()) == axes.end(),
                    "{}: an axis is listed twice", where("flip"));
  return append(op("flip"), {value}, {{"axes", std::move(axes)}},
                placedResult(tensor.dtype, tensor.domain));
}

ValueId FusionBuilder::pad(ValueId value, std::vector<int64_t> lows, std::vector<int64_t> highs,
                           ValueId fill) {
  const TensorView tensor = tensorOf("pad", value);
  HEDDLE_USER_CHECK(lows.size() == tensor.rank() && highs.size() == tensor.rank(),
                    "{}: {} has {} axes, got {} lows and {} highs", where("pad"), typeOf(value),
                    tensor.rank(), lows.size(), highs.size());
  HEDDLE_USER_CHECK(fusion_.value(fill).is_scalar, "{}: {} is a tensor, expected a scalar",
                    where("pad"), typeOf(fill));
  std::vector<IterDomain> domain;
  for (size_t i = 0; i < lows.size(); ++i) {
    const IterDomain& from = tensor.domain[i];
    if (lows[i] == 0 && highs[i] == 0) {
      domain.push_back(from);
      continue;
    }
    Size extent = from.extent + Size(lows[i]) + Size(highs[i]);
    HEDDLE_USER_CHECK(!extent.isConstant() || extent.constant() >= 0,
                      "{}: axis {} of {} cannot be cut by {} and {}", where("pad"), i,
                      typeOf(value), -lows[i], -highs[i]);
    domain.push_back({std::move(extent), IterKind::Iteration});
  }
  return append(op("pad"), {value, fill}, {{"lows", std::move(lows)}, {"highs", std::move(highs)}},
                placedResult(tensor.dtype, std::move(domain)));
}

ValueId FusionBuilder::take(ValueId value, ValueId index, int64_t axis) {
  const TensorView tensor = tensorOf("take", value);
  const TensorView places = indexOf("take", index);
  axis = normalizeAxis("take", axis, tensor.rank());
  std::vector<IterDomain> domain(tensor.domain.begin(), tensor.domain.begin() + axis);
  domain.insert(domain.end(), places.domain.begin(), places.domain.end());
  domain.insert(domain.end(), tensor.domain.begin() + axis + 1, tensor.domain.end());
  return append(op("take"), {value, index}, {{"axis", axis}},
                placedResult(tensor.dtype, std::move(domain)));
}

ValueId FusionBuilder::takeAlongAxis(ValueId value, ValueId index, int64_t axis) {
  const TensorView tensor = tensorOf("take_along_axis", value);
  const TensorView places = indexOf("take_along_axis", index);
  axis = normalizeAxis("take_along_axis", axis, tensor.rank());
  HEDDLE_USER_CHECK(places.rank() == tensor.rank(), "{}: {} and its index {} differ in rank",
                    where("take_along_axis"), typeOf(value), typeOf(index));
  for (size_t i = 0; i < tensor.rank(); ++i) {
    if (static_cast<int64_t>(i) != axis) agree("take_along_axis", value, i, index, i);
  }
  return append(op("take_along_axis"), {value, index}, {{"axis", axis}},
                placedResult(tensor.dtype, places.domain));
}

ValueId FusionBuilder::cumsum(ValueId value, int64_t axis) {
  const TensorView tensor = tensorOf("cumsum", value);
  refuseFloat8("cumsum", value);
  axis = normalizeAxis("cumsum", axis, tensor.rank());
  return append(op("cumsum"), {value}, {{"axis", axis}},
                placedResult(isFloat(tensor.dtype) ? tensor.dtype : DType::I64, tensor.domain));
}

ValueId FusionBuilder::argsort(ValueId value, int64_t axis, bool descending) {
  return apply("argsort", {value}, {{"axis", axis}, {"descending", descending}});
}

ValueId FusionBuilder::scatter(ValueId value, ValueId index, ValueId source, int64_t axis) {
  return scatterBy("scatter", value, index, source, axis);
}

ValueId FusionBuilder::scatterAdd(ValueId value, ValueId index, ValueId source, int64_t axis) {
  return scatterBy("scatter_add", value, index, source, axis);
}

ValueId FusionBuilder::scatterBy(std::string_view op_name, ValueId value, ValueId index,
                                 ValueId source, int64_t axis) {
  const TensorView tensor = tensorOf(op_name, value);
  const TensorView places = indexOf(op_name, index);
  const TensorView from = tensorOf(op_name, source);
  if (op_name == "scatter_add") refuseFloat8(op_name, value);
  axis = normalizeAxis(op_name, axis, tensor.rank());
  HEDDLE_USER_CHECK(places.rank() == tensor.rank() && from.rank() == tensor.rank(),
                    "{}: {}, its index {} and its source {} differ in rank", where(op_name),
                    typeOf(value), typeOf(index), typeOf(source));
  HEDDLE_USER_CHECK(from.dtype == tensor.dtype, "{}: {} and its source {} differ in dtype",
                    where(op_name), typeOf(value), typeOf(source));
  for (size_t i = 0; i < tensor.rank(); ++i) {
    if (static_cast<int64_t>(i) != axis) agree(op_name, value, i, source, i);
    if (!places.domain[i].extent.isConstant(1)) agree(op_name, source, i, index, i);
  }
  return append(op(op_name), {value, index, source}, {{"axis", axis}},
                placedResult(tensor.dtype, tensor.domain));
}

}  // namespace heddle
