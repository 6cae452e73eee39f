// FusionBuilder: checks of axes, sizes and reused inputs, and the ops expand, diagonal and slice.
#include <algorithm>
#include <cstdint>

#include "ir/base/check.h"
#include "ir/graph/builder.h"
#include "ir/graph/size_scalars.h"
#include "ir/sizes/cancel_terms.h"

namespace heddle {

std::vector<int64_t> FusionBuilder::normalizeAxes(std::string_view op_name,
                                                  std::vector<int64_t> axes, size_t rank) const {
  for (int64_t& axis : axes) {
    const bool of_no_axes = rank == 0 && (axis == 0 || axis == -1);
    axis = of_no_axes ? 0 : normalizeAxis(op_name, axis, rank);
  }
  std::sort(axes.begin(), axes.end());
  const auto twice = std::adjacent_find(axes.begin(), axes.end());
  HEDDLE_USER_CHECK(twice == axes.end(), "{}: axis {} is listed twice", where(op_name), *twice);
  if (rank == 0) axes.clear();
  return axes;
}

void FusionBuilder::checkSizes(std::string_view op_name, const std::vector<Size>& sizes) const {
  for (size_t i = 0; i < sizes.size(); ++i) {
    HEDDLE_USER_CHECK(!sizes[i].isConstant() || sizes[i].constant() >= 0,
                      "{}: the size of axis {} is {}, expected 0 or more", where(op_name), i,
                      sizes[i].str());
  }
}

void FusionBuilder::checkReuse(ValueId value, ValueId input) {
  constexpr const char* kWhat = "return";
  const bool is_input = fusion_.values().has(input) && fusion_.value(input).definition == kNoExpr;
  HEDDLE_USER_CHECK(is_input, "{}: an output can only be stored in an input, and {} is none",
                    where(kWhat),
                    fusion_.values().has(input) ? typeOf(input) : fmt::format("value {}", input));
  const TensorView result = tensorOf(kWhat, value);
  const TensorView memory = tensorOf(kWhat, input);
  HEDDLE_USER_CHECK_CODE(Type, result.dtype == memory.dtype && result.rank() == memory.rank(),
                         "{}: {} cannot be stored in {}, because their types differ", where(kWhat),
                         typeOf(value), typeOf(input));
  for (size_t axis = 0; axis < result.rank(); ++axis) agree(kWhat, value, axis, input, axis);
  for (size_t i = 0; i < fusion_.outputs().size(); ++i) {
    HEDDLE_USER_CHECK(!fusion_.reuses()[i] || fusion_.reuses()[i]->input != input,
                      "{}: the outputs {} and {} cannot both be stored in the input {}",
                      where(kWhat), typeOf(fusion_.outputs()[i]), typeOf(value), typeOf(input));
  }
}

// The size of an existing axis may be a scalar (`%n`) that is -1 in a run. The axis then keeps its
// extent. Such a size therefore becomes Size::given(size, extent). This also marks the size as
// final: a pass that builds the op again does not change it. The value of an expression such as `%n
// + 1` must not be negative, and neither must the size of a new axis. New axes are first added by a
// broadcast, so that `expand` only stretches axes.
ValueId FusionBuilder::expand(ValueId value, std::vector<Size> sizes) {
  const size_t rank = tensorOf("expand", value).rank();
  HEDDLE_USER_CHECK_CODE(ShapeMismatch, sizes.size() >= rank, "{}: {} has {} axes, got {} sizes",
                         where("expand"), typeOf(value), rank, sizes.size());
  const size_t added = sizes.size() - rank;
  for (size_t i = 0; i < rank; ++i) {
    Size& size = sizes[added + i];
    const Size& extent = fusion_.tensor(value).domain[i].extent;
    if (size.isConstant(-1)) size = extent;
    if (!size.hasScalar() || size.hasGiven() || size == extent) continue;
    const bool may_be_open = isScalarValue(size);
    guardAtMost(Size(may_be_open ? -1 : 0), size,
                fmt::format("size {} of {}", added + i, where("expand")));
    if (may_be_open) size = Size::given(size, extent);
  }
  const auto first = sizes.begin();
  guardSizes("expand", {first, first + static_cast<int64_t>(added)}, fusion_.tensor(value).dtype);
  for (size_t i = 0; i < added; ++i) {
    if (sizes[i].hasScalar()) sizes[i] = Size::given(sizes[i], Size(1));
  }
  checkSizes("expand", sizes);
  if (added > 0) {
    std::string result_name = std::exchange(pending_name_, "");
    value = broadcast(value, rowMajor(added));
    pending_name_ = std::move(result_name);
  }
  const TensorView tensor = fusion_.tensor(value);
  std::vector<IterDomain> domain;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const IterDomain& from = tensor.domain[i];
    if (from.extent.isConstant(1)) {
      const bool stays = sizes[i].isConstant(1);
      domain.push_back({sizes[i], stays ? from.kind : IterKind::Iteration});
      continue;
    }
    if (from.kind == IterKind::Symbolic) {
      domain.push_back({sizes[i], IterKind::Iteration});
      continue;
    }
    HEDDLE_USER_CHECK_CODE(
        ShapeMismatch,
        !from.extent.isConstant() || !sizes[i].isConstant() || from.extent == sizes[i],
        "{}: axis {} of {} is not 1 and cannot become {}", where("expand"), i, typeOf(value),
        sizes[i].str());
    if (!(from.extent == sizes[i])) {
      fusion_.guards.push_back(
          {from.extent, sizes[i],
           fmt::format("axis {} of {} and its size in {}", i, typeOf(value), where("expand"))});
    }
    domain.push_back(from);
  }
  Value result;
  result.tensor.dtype = tensor.dtype;
  result.tensor.domain = std::move(domain);
  return append(op("expand"), {value}, {{"sizes", std::move(sizes)}}, std::move(result));
}

// Reduces the general case to an offset of 0: a slice removes the elements before the diagonal, and
// the op selects elements with equal indices.
ValueId FusionBuilder::diagonal(ValueId value, int64_t offset, int64_t axis1, int64_t axis2) {
  const size_t rank = tensorOf("diagonal", value).rank();
  axis1 = normalizeAxis("diagonal", axis1, rank);
  axis2 = normalizeAxis("diagonal", axis2, rank);
  HEDDLE_USER_CHECK(axis1 != axis2, "{}: axis {} is listed twice", where("diagonal"), axis1);
  HEDDLE_USER_CHECK(offset != INT64_MIN, "{}: the offset {} is too small", where("diagonal"),
                    offset);
  if (offset != 0) {
    const size_t moved = offset > 0 ? axis2 : axis1;
    const std::vector<Size> stops = fusion_.tensor(value).sizes();
    std::vector<Size> starts(rank, Size(0));
    starts[moved] = Size::min(Size(offset > 0 ? offset : -offset), stops[moved]);
    std::string result_name = std::exchange(pending_name_, "");
    value = slice(value, std::move(starts), stops);
    pending_name_ = std::move(result_name);
  }
  const TensorView tensor = fusion_.tensor(value);
  Value result;
  result.tensor.dtype = tensor.dtype;
  for (size_t i = 0; i < rank; ++i) {
    const auto axis = static_cast<int64_t>(i);
    if (axis != axis1 && axis != axis2) result.tensor.domain.push_back(tensor.domain[i]);
  }
  const auto extent = [&](int64_t axis) { return tensor.domain[axis].extent; };
  result.tensor.domain.push_back({Size::min(extent(axis1), extent(axis2))});
  return append(op("diagonal"), {value}, {{"axis1", axis1}, {"axis2", axis2}}, std::move(result));
}

ValueId FusionBuilder::slice(ValueId value, std::vector<Size> starts, std::vector<Size> stops,
                             std::vector<int64_t> steps) {
  const TensorView tensor = tensorOf("slice", value);
  HEDDLE_USER_CHECK_CODE(ShapeMismatch,
                         starts.size() == tensor.rank() && stops.size() == tensor.rank(),
                         "{}: {} has {} axes, got {} starts and {} stops", where("slice"),
                         typeOf(value), tensor.rank(), starts.size(), stops.size());
  HEDDLE_USER_CHECK_CODE(ShapeMismatch, steps.empty() || steps.size() == tensor.rank(),
                         "{}: {} has {} axes, got {} steps", where("slice"), typeOf(value),
                         tensor.rank(), steps.size());
  std::vector<IterDomain> domain;
  for (size_t i = 0; i < starts.size(); ++i) {
    const IterDomain& from = tensor.domain[i];
    const int64_t step = steps.empty() ? 1 : steps[i];
    HEDDLE_USER_CHECK(step > 0, "{}: axis {} of {} has the step {}, expected 1 or more",
                      where("slice"), i, typeOf(value), step);
    if (starts[i].isConstant(0) && stops[i] == from.extent && step == 1) {
      domain.push_back(from);
      continue;
    }
    if (starts[i].hasScalar() || stops[i].hasScalar()) {
      const auto bound = [&](std::string_view which) {
        return fmt::format("the {} of axis {} of {} in {}", which, i, typeOf(value),
                           where("slice"));
      };
      guardAtMost(Size(0), starts[i], bound("start"));
      guardAtMost(starts[i], stops[i], bound("range"));
      guardAtMost(stops[i], from.extent, bound("stop"));
    }
    const bool known = starts[i].isConstant() && stops[i].isConstant();
    HEDDLE_USER_CHECK_CODE(
        ShapeMismatch,
        !known || (starts[i].constant() >= 0 && starts[i].constant() <= stops[i].constant()),
        "{}: axis {} of {} has the start {} and the stop {}, expected 0 <= start <= stop",
        where("slice"), i, typeOf(value), starts[i].str(), stops[i].str());
    HEDDLE_USER_CHECK_CODE(ShapeMismatch,
                           !stops[i].isConstant() || !from.extent.isConstant() ||
                               stops[i].constant() <= from.extent.constant(),
                           "{}: the stop of axis {} of {} is {}, expected at most {}",
                           where("slice"), i, typeOf(value), stops[i].str(), from.extent.str());
    // The extent of [%i + 1, %i + 2) must not depend on %i, so that %i only decides an offset.
    const Size extent = cancelTerms(stops[i] - starts[i]);
    domain.push_back({Size::ceilDiv(extent, Size(step)), IterKind::Iteration});
  }
  Attrs attrs = {{"starts", std::move(starts)}, {"stops", std::move(stops)}};
  // Omit `steps` if all steps are 1, so that equal fusions have equal texts.
  if (std::any_of(steps.begin(), steps.end(), [](int64_t step) { return step != 1; })) {
    attrs.emplace_back("steps", std::move(steps));
  }
  Value result;
  result.tensor.dtype = tensor.dtype;
  result.tensor.domain = std::move(domain);
  return append(op("slice"), {value}, std::move(attrs), std::move(result));
}

}  // namespace heddle
