// FusionBuilder: the ops full, iota, flip, pad, take, cumsum and argsort.
#include <algorithm>

#include "ir/base/check.h"
#include "ir/graph/builder.h"
#include "ir/sizes/cancel_terms.h"

namespace heddle {
namespace {

Value indexedResult(DType dtype, std::vector<IterDomain> domain) {
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
  HEDDLE_USER_CHECK_CODE(Type, fusion_.value(scalar).is_scalar,
                         "{}: {} is a tensor, expected a scalar", where("full"), typeOf(scalar));
  checkSizes("full", sizes);
  guardSizes("full", sizes, dtype);
  std::vector<IterDomain> domain = domainOf(sizes);
  return append(op("full"), {scalar}, {{"sizes", std::move(sizes)}, {"dtype", dtype}},
                indexedResult(dtype, std::move(domain)));
}

ValueId FusionBuilder::iota(std::vector<Size> sizes, int64_t axis) {
  checkSizes("iota", sizes);
  guardSizes("iota", sizes, DType::I64);
  axis = normalizeAxis("iota", axis, sizes.size());
  std::vector<IterDomain> domain = domainOf(sizes);
  return append(op("iota"), {}, {{"sizes", std::move(sizes)}, {"axis", axis}},
                indexedResult(DType::I64, std::move(domain)));
}

const TensorView& FusionBuilder::indexOf(std::string_view op_name, ValueId id) const {
  const TensorView& index = tensorOf(op_name, id);
  HEDDLE_USER_CHECK_CODE(Type, index.dtype == DType::I64 || index.dtype == DType::I32,
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
  HEDDLE_USER_CHECK_CODE(ShapeMismatch, !x.isConstant() || !y.isConstant(),
                         "{}: shapes disagree, {} and {} ({})", where(op_name), x.str(), y.str(),
                         both);
  fusion_.guards.push_back({x, y, both});
}

ValueId FusionBuilder::flip(ValueId value, std::vector<int64_t> axes) {
  const TensorView tensor = tensorOf("flip", value);
  axes = normalizeAxes("flip", std::move(axes), tensor.rank());
  return append(op("flip"), {value}, {{"axes", std::move(axes)}},
                indexedResult(tensor.dtype, tensor.domain));
}

ValueId FusionBuilder::pad(ValueId value, std::vector<Size> lows, std::vector<Size> highs,
                           ValueId fill) {
  const TensorView tensor = tensorOf("pad", value);
  if (fill == kNoValue) {
    std::string result_name = std::exchange(pending_name_, "");
    fill = constant(int64_t{0});
    pending_name_ = std::move(result_name);
  }
  HEDDLE_USER_CHECK_CODE(ShapeMismatch,
                         lows.size() == tensor.rank() && highs.size() == tensor.rank(),
                         "{}: {} has {} axes, got {} lows and {} highs", where("pad"),
                         typeOf(value), tensor.rank(), lows.size(), highs.size());
  HEDDLE_USER_CHECK_CODE(Type, fusion_.value(fill).is_scalar,
                         "{}: {} is a tensor, expected a scalar", where("pad"), typeOf(fill));
  std::vector<IterDomain> domain;
  for (size_t i = 0; i < lows.size(); ++i) {
    const IterDomain& from = tensor.domain[i];
    if (lows[i].isConstant(0) && highs[i].isConstant(0)) {
      domain.push_back(from);
      continue;
    }
    Size extent = cancelTerms(from.extent + lows[i] + highs[i]);
    HEDDLE_USER_CHECK_CODE(
        ShapeMismatch, !extent.isConstant() || extent.constant() >= 0,
        "{}: axis {} of {} is too short to remove {} elements in front and {} at the end",
        where("pad"), i, typeOf(value), (Size(0) - lows[i]).str(), (Size(0) - highs[i]).str());
    guardAtMost(Size(0), extent,
                fmt::format("axis {} of {} after {}", i, typeOf(value), where("pad")));
    domain.push_back({std::move(extent), IterKind::Iteration});
  }
  return append(op("pad"), {value, fill}, {{"lows", std::move(lows)}, {"highs", std::move(highs)}},
                indexedResult(tensor.dtype, std::move(domain)));
}

ValueId FusionBuilder::take(ValueId value, ValueId index, int64_t axis) {
  const std::vector<int64_t> along = normalizeAxes("take", {axis}, tensorOf("take", value).rank());
  const TensorView indices = indexOf("take", index);
  if (along.empty()) {
    std::string result_name = std::exchange(pending_name_, "");
    value = asLine(value);
    pending_name_ = std::move(result_name);
  }
  axis = along.empty() ? 0 : along[0];
  const TensorView tensor = fusion_.tensor(value);
  std::vector<IterDomain> domain(tensor.domain.begin(), tensor.domain.begin() + axis);
  domain.insert(domain.end(), indices.domain.begin(), indices.domain.end());
  domain.insert(domain.end(), tensor.domain.begin() + axis + 1, tensor.domain.end());
  return append(op("take"), {value, index}, {{"axis", axis}},
                indexedResult(tensor.dtype, std::move(domain)));
}

ValueId FusionBuilder::cumsum(ValueId value, int64_t axis) {
  const TensorView tensor = tensorOf("cumsum", value);
  refuseFloat8("cumsum", value);
  const DType dtype = isFloat(tensor.dtype) ? tensor.dtype : DType::I64;
  const std::vector<int64_t> along = normalizeAxes("cumsum", {axis}, tensor.rank());
  if (along.empty()) return dtype == tensor.dtype ? set(value) : cast(value, dtype);
  return append(op("cumsum"), {value}, {{"axis", along[0]}}, indexedResult(dtype, tensor.domain));
}

ValueId FusionBuilder::argsort(ValueId value, int64_t axis, bool descending,
                               std::optional<int64_t> first) {
  const TensorView tensor = tensorOf("argsort", value);
  refuseFloat8("argsort", value);
  HEDDLE_USER_CHECK(!first || *first >= 0, "{}: first is {}, expected 0 or more", where("argsort"),
                    *first);
  const std::vector<int64_t> along = normalizeAxes("argsort", {axis}, tensor.rank());
  if (along.empty()) {
    std::string result_name = std::exchange(pending_name_, "");
    const ValueId zero = constant(int64_t{0});
    pending_name_ = std::move(result_name);
    return full(zero, {}, DType::I64);
  }
  Attrs attrs = {{"axis", along[0]}};
  if (descending) attrs.emplace_back("descending", true);
  std::vector<IterDomain> domain = tensor.domain;
  if (first) {
    attrs.emplace_back("first", *first);
    IterDomain& line = domain[along[0]];
    line.extent = Size::min(line.extent, Size(*first));
    if (!line.extent.isConstant(1)) line.kind = IterKind::Iteration;
  }
  return append(op("argsort"), {value}, std::move(attrs),
                indexedResult(DType::I64, std::move(domain)));
}

}  // namespace heddle
