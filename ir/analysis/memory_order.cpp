#include "ir/analysis/memory_order.h"

#include <algorithm>

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

std::optional<AxisOrder> inputOrder(const TensorView& tensor) {
  if (!tensor.layout.observed) return rowMajor(tensor.rank());
  const Layout::Observed& observed = *tensor.layout.observed;
  for (size_t axis = 0; axis < observed.contiguous.size(); ++axis) {
    if (observed.contiguous[axis] || tensor.domain[axis].extent.isConstant(1)) continue;
    return std::nullopt;
  }
  return observed.order;
}

// Returns the memory order of permute(x, axes) if x has the memory order `order`.
AxisOrder permuted(const AxisOrder& order, const std::vector<int64_t>& axes) {
  std::vector<int64_t> position(axes.size());  // the output axis of each input axis
  for (size_t i = 0; i < axes.size(); ++i) {
    position[axes[i]] = static_cast<int64_t>(i);
  }
  AxisOrder result;
  for (int64_t axis : order) result.push_back(position[axis]);
  return result;
}

// Returns the step of a `set`, but never Relayout. reshardStepOf() detects Relayout, but calls
// memoryOrder(), which calls this function. It can therefore not be used here.
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

// Returns the memory order of a value that is not the result of a permute.
std::optional<AxisOrder> orderOfBase(const Fusion& fusion, const Value& value) {
  if (value.definition == kNoExpr) return inputOrder(value.tensor);
  const Expression& expr = fusion.expr(value.definition);
  switch (expr.op->kind) {
    case OpKind::Slice:
    case OpKind::Diagonal:
      return std::nullopt;
    case OpKind::Reshape:
      // A hint here is the order of a view (ir/passes/orders/infer_orders.h).
      return value.tensor.layout.hint.value_or(rowMajor(value.tensor.rank()));
    case OpKind::Set: {
      const ReshardStep step = stepOf(fusion, expr);
      const std::optional<Sharding>& from = fusion.tensor(expr.inputs[0]).sharding;
      if (step.kind == ReshardStep::Kind::Slice || (from && hasGaps(step, *from, value.tensor))) {
        return std::nullopt;
      }
      return value.tensor.allocationOrder();
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
      return value.tensor.allocationOrder();
    case OpKind::Permute:
    case OpKind::Constant:
    case OpKind::SizeOf:
      break;
  }
  HEDDLE_CHECK(false, "%{} has no memory order", value.name);
  return std::nullopt;
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

std::optional<AxisOrder> elementOrder(const Fusion& fusion, ValueId id) {
  std::vector<const Expression*> permutes;
  while (fusion.value(id).definition != kNoExpr) {
    const Expression& expr = fusion.expr(fusion.value(id).definition);
    if (expr.op->kind != OpKind::Permute) break;
    permutes.push_back(&expr);
    id = expr.inputs[0];
  }
  std::optional<AxisOrder> order = orderOfBase(fusion, fusion.value(id));
  for (size_t i = permutes.size(); order && i > 0; --i) {
    order = permuted(*order, permutes[i - 1]->attr<std::vector<int64_t>>("axes"));
  }
  return order;
}

IdVector<ValueId, std::optional<AxisOrder>> elementOrders(const Fusion& fusion) {
  IdVector<ValueId, std::optional<AxisOrder>> orders(fusion.values().size());
  for (ValueId id : fusion.values().ids()) {
    const Value& value = fusion.value(id);
    if (value.is_scalar) continue;
    const Expression* permute =
        value.definition == kNoExpr ? nullptr : &fusion.expr(value.definition);
    if (permute == nullptr || permute->op->kind != OpKind::Permute) {
      orders[id] = orderOfBase(fusion, value);
    } else if (const auto& of_base = orders[permute->inputs[0]]) {
      orders[id] = permuted(*of_base, permute->attr<std::vector<int64_t>>("axes"));
    }
  }
  return orders;
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
