#include "ir/passes/orders/follow_orders.h"

#include <algorithm>

#include "ir/passes/orders/order_notes.h"

namespace heddle {
namespace {

// Returns whether the expression is a matrix product [..., k] x [k, n], or a `linear` with a weight
// [n, k]. In both forms, each row of the first operand gives one row of the result.
bool isRowsTimesMatrix(const Fusion& fusion, const Expression& expr) {
  if (expr.op->kind != OpKind::Matmul) return false;
  const TensorView& rows = fusion.tensor(expr.inputs[0]);
  return fusion.tensor(expr.inputs[1]).rank() == 2 && rows.rank() > 2 &&
         fusion.tensor(expr.outputs[0]).rank() == rows.rank();
}

bool readsInAnyOrder(const Fusion& fusion, const Expression& expr, ValueId id) {
  if (expr.op->kind == OpKind::Pointwise) return true;
  return isRowsTimesMatrix(fusion, expr) && expr.inputs[0] == id &&
         std::count(expr.inputs.begin(), expr.inputs.end(), id) == 1;
}

bool spansAllAxes(const TensorView& tensor, size_t rank) {
  return tensor.rank() == rank &&
         std::none_of(tensor.domain.begin(), tensor.domain.end(),
                      [](const IterDomain& axis) { return axis.kind == IterKind::Broadcast; });
}

// Returns the needed order of the tensor or, without one, its hinted order. Returns nullopt if the
// tensor has neither.
const std::optional<AxisOrder>& orderOf(const TensorView& tensor) {
  return tensor.layout.needed ? tensor.layout.needed : tensor.layout.hint;
}

// Returns the order (orderOf()) that the operands have in common. Returns nullopt if there is no
// such order, if it is row-major, or if the last axis is not innermost.
std::optional<AxisOrder> orderToFollow(const Fusion& fusion, const Expression& expr) {
  const size_t rank = fusion.tensor(expr.outputs[0]).rank();
  std::optional<AxisOrder> order;
  if (isRowsTimesMatrix(fusion, expr)) {
    order = orderOf(fusion.tensor(expr.inputs[0]));
  } else if (expr.op->kind == OpKind::Pointwise) {
    bool first = true;
    for (ValueId id : expr.inputs) {
      if (fusion.value(id).is_scalar || !spansAllAxes(fusion.tensor(id), rank)) continue;
      const std::optional<AxisOrder>& mine = orderOf(fusion.tensor(id));
      if (!first && mine != order) return std::nullopt;
      order = mine;
      first = false;
    }
  }
  const bool innermost = order && order->back() + 1 == static_cast<int64_t>(rank);
  return innermost && *order != rowMajor(rank) ? order : std::nullopt;
}

}  // namespace

Fusion followOrders(const Fusion& fusion) {
  Fusion result = fusion;
  const IdVector<ValueId, std::vector<ExprId>> users = fusion.users();
  const IdVector<ValueId, bool> is_output = fusion.outputFlags();
  const auto is_free = [&](ValueId id) {
    const Value& value = fusion.value(id);
    const std::vector<ExprId>& readers = users[id];
    return !value.is_scalar && !value.tensor.hasFixedOrder() && !value.tensor.layout.hint &&
           !is_output[id] && std::all_of(readers.begin(), readers.end(), [&](ExprId reader) {
             return readsInAnyOrder(fusion, fusion.expr(reader), id);
           });
  };
  std::vector<OrderNote> notes;
  for (const Expression& expr : fusion.exprs()) {
    if (!is_free(expr.outputs[0])) continue;
    const std::optional<AxisOrder> order = orderToFollow(result, expr);
    if (!order) continue;
    const auto operand = std::find_if(expr.inputs.begin(), expr.inputs.end(), [&](ValueId id) {
      return !fusion.value(id).is_scalar && orderOf(result.tensor(id)) == order;
    });
    result.layout(expr.outputs[0]).hint = order;
    notes.push_back({fusion.value(expr.outputs[0]).name,
                     *order,
                     "%" + fusion.value(*operand).name + ", for a collective",
                     {}});
  }
  addOrderNotes(result, notes);
  return result;
}

}  // namespace heddle
