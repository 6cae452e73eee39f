#include "ir/analysis/memory_order.h"

#include <algorithm>

#include "ir/analysis/reshape_order.h"
#include "ir/analysis/reshard_step.h"
#include "ir/base/check.h"
#include "ir/sizes/size_quotient.h"
#include "ir/types/mesh_relations.h"

namespace heddle {
namespace {

// Returns whether the axis has only one element in memory. In a tensor with a sharding, padding may
// enlarge an axis of one element.
bool hasOneElement(const TensorView& tensor, int64_t axis) {
  const IterDomain& domain = tensor.domain[axis];
  return domain.kind == IterKind::Broadcast || (domain.extent.isConstant(1) && !tensor.sharding);
}

using ElementLayout = Layout::Observed;

ElementLayout withoutGaps(AxisOrder order) {
  std::vector<bool> contiguous(order.size(), true);
  return {std::move(order), std::move(contiguous)};
}

ElementLayout inputLayout(const TensorView& tensor) {
  ElementLayout layout = tensor.layout.observed.value_or(withoutGaps(rowMajor(tensor.rank())));
  for (size_t axis = 0; axis < tensor.rank(); ++axis) {
    if (tensor.domain[axis].extent.isConstant(1)) layout.contiguous[axis] = true;
  }
  return layout;
}

// Returns the layout of permute(x, axes) if x has the layout `of`.
ElementLayout permuted(const ElementLayout& of, const std::vector<int64_t>& axes) {
  ElementLayout result{{}, std::vector<bool>(axes.size())};
  std::vector<int64_t> position(axes.size());  // the output axis of each input axis
  for (size_t i = 0; i < axes.size(); ++i) {
    position[axes[i]] = static_cast<int64_t>(i);
    result.contiguous[i] = of.contiguous[axes[i]];
  }
  for (int64_t axis : of.order) result.order.push_back(position[axis]);
  return result;
}

// Returns the layout of a slice of a value with the layout `of`. A slice along an axis leaves gaps
// between the elements of the next outer axis. A step other than 1 leaves gaps between the elements
// of the axis itself.
ElementLayout sliced(const Fusion& fusion, const Expression& slice, const ElementLayout& of) {
  const TensorView& in = fusion.tensor(slice.inputs[0]);
  const TensorView& out = fusion.tensor(slice.outputs[0]);
  const auto& starts = slice.attr<std::vector<Size>>("starts");
  const auto& stops = slice.attr<std::vector<Size>>("stops");
  const Attr* steps = slice.find("steps");
  ElementLayout result = of;
  bool leaves_gaps = false;  // the slice shortens the next inner axis
  for (size_t i = of.order.size(); i-- > 0;) {
    const auto axis = static_cast<size_t>(of.order[i]);
    if (in.domain[axis].extent.isConstant(1)) continue;
    const bool has_step = steps != nullptr && std::get<std::vector<int64_t>>(*steps)[axis] != 1;
    if (leaves_gaps || has_step) result.contiguous[axis] = false;
    leaves_gaps =
        has_step || !starts[axis].isConstant(0) || !(stops[axis] == in.domain[axis].extent);
  }
  for (size_t axis = 0; axis < out.rank(); ++axis) {
    if (out.domain[axis].extent.isConstant(1)) result.contiguous[axis] = true;
  }
  return result;
}

// Returns the layout of a reshape of a value with the layout `of`.
ElementLayout reshaped(const Fusion& fusion, const Expression& reshape, const ElementLayout& of) {
  const TensorView& in = fusion.tensor(reshape.inputs[0]);
  const TensorView& out = fusion.tensor(reshape.outputs[0]);
  const auto groups = reshapeInMemory(in, out, of);
  return groups ? layoutOfGroups(*groups, of, in, out) : withoutGaps(rowMajor(out.rank()));
}

// Returns the step of a `set`, with Same in place of Relayout. This file cannot call
// reshardStepOf(): to detect Relayout, reshardStepOf() calls memoryOrder(), which calls this
// function.
ReshardStep stepOf(const Fusion& fusion, const Expression& set) {
  const TensorView& from = fusion.tensor(set.inputs[0]);
  const TensorView& to = fusion.tensor(set.outputs[0]);
  return stepBetween(from.sharding, to.sharding, to, fusion.meshes);
}

}  // namespace

bool hasGaps(const ReshardStep& step, const Sharding& from, const TensorView& to) {
  if (step.kind != ReshardStep::Kind::AllToAll ||
      isOutermost(to.allocationOrder(), step.joined, to)) {
    return false;
  }
  const size_t joined = step.joined;
  const int64_t blocks = devicesOf(step.mesh, from.axes[joined]);
  return !remainder(to.domain[joined].extent, blocks).isConstant(0);
}

namespace {

bool isView(const Expression& expr) {
  const OpKind kind = expr.op->kind;
  return kind == OpKind::Permute || kind == OpKind::Slice || kind == OpKind::Reshape;
}

// Returns the layout of the value, or nullopt if it is unknown. `operand` is the layout of the
// operand, if the value is a view.
std::optional<ElementLayout> layoutAfter(const Fusion& fusion, const Value& value,
                                         const std::optional<ElementLayout>& operand) {
  if (value.definition == kNoExpr) return inputLayout(value.tensor);
  const Expression& expr = fusion.expr(value.definition);
  switch (expr.op->kind) {
    case OpKind::Permute:
    case OpKind::Slice:
      if (!operand) return std::nullopt;
      return layoutOfView(fusion, expr, *operand);
    case OpKind::Reshape:
      if (!operand) return withoutGaps(rowMajor(value.tensor.rank()));
      return layoutOfView(fusion, expr, *operand);
    case OpKind::Diagonal:
      return std::nullopt;
    case OpKind::Set: {
      const ReshardStep step = stepOf(fusion, expr);
      const std::optional<Sharding>& from = fusion.tensor(expr.inputs[0]).sharding;
      if (step.kind == ReshardStep::Kind::Slice || (from && hasGaps(step, *from, value.tensor))) {
        return std::nullopt;
      }
      return withoutGaps(value.tensor.allocationOrder());
    }
    case OpKind::Pointwise:
    case OpKind::Reduction:
    case OpKind::Broadcast:
    case OpKind::Expand:
    case OpKind::Full:
    case OpKind::Iota:
    case OpKind::Index:
    case OpKind::Matmul:
    case OpKind::Scan:
    case OpKind::Scatter:
      return withoutGaps(value.tensor.allocationOrder());
    case OpKind::Constant:
    case OpKind::SizeOf:
      break;
  }
  HEDDLE_CHECK(false, "%{} has no memory order", value.name);
  return std::nullopt;
}

bool hasNoGaps(const ElementLayout& layout) {
  return std::find(layout.contiguous.begin(), layout.contiguous.end(), false) ==
         layout.contiguous.end();
}

}  // namespace

ValueId baseOf(const Fusion& fusion, ValueId id) {
  while (fusion.value(id).definition != kNoExpr) {
    const Expression& expr = fusion.expr(fusion.value(id).definition);
    if (expr.op->kind != OpKind::Permute) break;
    id = expr.inputs[0];
  }
  return id;
}

ValueId viewedValueOf(const Fusion& fusion, ValueId id) {
  while (fusion.value(id).definition != kNoExpr) {
    const Expression& expr = fusion.expr(fusion.value(id).definition);
    if (!isView(expr)) break;
    id = expr.inputs[0];
  }
  return id;
}

Layout::Observed layoutOfView(const Fusion& fusion, const Expression& view,
                              const Layout::Observed& operand) {
  switch (view.op->kind) {
    case OpKind::Permute:
      return permuted(operand, view.attr<std::vector<int64_t>>("axes"));
    case OpKind::Slice:
      return sliced(fusion, view, operand);
    case OpKind::Reshape:
      return reshaped(fusion, view, operand);
    default:
      HEDDLE_CHECK(false, "{} is no view", view.op->name);
  }
  return operand;
}

bool isReshapeView(const Fusion& fusion, const Expression& reshape,
                   const Layout::Observed& operand) {
  const TensorView& in = fusion.tensor(reshape.inputs[0]);
  if (hasNoGaps(operand) && sameOrder(operand.order, rowMajor(in.rank()), in)) return true;
  return reshapeInMemory(in, fusion.tensor(reshape.outputs[0]), operand).has_value();
}

// Uses a loop instead of recursion, because chains of views may be long.
std::optional<Layout::Observed> elementLayout(const Fusion& fusion, ValueId id) {
  std::vector<ValueId> views{id};
  while (fusion.value(views.back()).definition != kNoExpr) {
    const Expression& expr = fusion.expr(fusion.value(views.back()).definition);
    if (!isView(expr)) break;
    views.push_back(expr.inputs[0]);
  }
  std::optional<ElementLayout> layout;
  for (; !views.empty(); views.pop_back()) {
    layout = layoutAfter(fusion, fusion.value(views.back()), layout);
  }
  return layout;
}

std::optional<Layout::Observed> elementLayout(const Fusion& fusion, ValueId id,
                                              const ElementLayouts& layouts) {
  const Value& value = fusion.value(id);
  if (value.definition == kNoExpr || !isView(fusion.expr(value.definition))) {
    return layoutAfter(fusion, value, std::nullopt);
  }
  return layoutAfter(fusion, value, layouts[fusion.expr(value.definition).inputs[0]]);
}

ElementLayouts elementLayouts(const Fusion& fusion) {
  ElementLayouts layouts(fusion.values().size());
  for (ValueId id : fusion.values().ids()) {
    if (!fusion.value(id).is_scalar) layouts[id] = elementLayout(fusion, id, layouts);
  }
  return layouts;
}

std::optional<AxisOrder> orderWithoutGaps(const std::optional<Layout::Observed>& layout) {
  return layout && hasNoGaps(*layout) ? std::optional(layout->order) : std::nullopt;
}

std::optional<AxisOrder> elementOrder(const Fusion& fusion, ValueId id) {
  return orderWithoutGaps(elementLayout(fusion, id));
}

std::optional<AxisOrder> memoryOrder(const Fusion& fusion, ValueId id) {
  const Value& base = fusion.value(baseOf(fusion, id));
  if (base.definition != kNoExpr) {
    const Expression& expr = fusion.expr(base.definition);
    if (expr.op->kind == OpKind::Set && isCommunication(stepOf(fusion, expr).kind))
      return std::nullopt;
  }
  return elementOrder(fusion, id);
}

bool sameOrder(const AxisOrder& a, const AxisOrder& b, const TensorView& tensor) {
  auto counted = [&](const AxisOrder& order) {
    AxisOrder kept;
    std::copy_if(order.begin(), order.end(), std::back_inserter(kept),
                 [&](int64_t axis) { return !hasOneElement(tensor, axis); });
    return kept;
  };
  return counted(a) == counted(b);
}

bool isOutermost(const AxisOrder& order, int64_t axis, const TensorView& tensor) {
  for (int64_t each : order) {
    if (each == axis) return true;
    if (!hasOneElement(tensor, each)) return false;
  }
  return false;
}

AxisOrder withOutermost(const AxisOrder& order, int64_t axis) {
  AxisOrder result{axis};
  std::copy_if(order.begin(), order.end(), std::back_inserter(result),
               [&](int64_t each) { return each != axis; });
  return result;
}

}  // namespace heddle
