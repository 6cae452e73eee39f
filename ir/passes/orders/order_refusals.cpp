#include "ir/passes/orders/order_refusals.h"

#include <algorithm>

#include "ir/analysis/memory_order.h"
#include "ir/analysis/reshard_step.h"
#include "ir/base/check.h"

namespace heddle {
namespace {

bool isCollective(const Fusion& fusion, const Expression& expr) {
  return expr.op->kind == OpKind::Set &&
         isCommunication(stepBetween(fusion.tensor(expr.inputs[0]).sharding,
                                     fusion.tensor(expr.outputs[0]).sharding,
                                     fusion.tensor(expr.outputs[0]), fusion.meshes)
                             .kind);
}

// Returns whether all axes except the last two come first in the order, in ascending order.
bool hasBatchesOutside(const AxisOrder& order) {
  for (size_t i = 0; i + 2 < order.size(); ++i) {
    if (order[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

bool hasLastInside(const AxisOrder& order) {
  return order.back() + 1 == static_cast<int64_t>(order.size());
}

// Returns whether the expression is a matrix product [b, m, k] x [k, n], or a `linear` with a
// weight [n, k]. The library then treats b and m as one axis, in either memory order.
bool isRowsTimesMatrix(const Fusion& fusion, const Expression& product) {
  return fusion.tensor(product.inputs[0]).rank() == 3 &&
         fusion.tensor(product.inputs[1]).rank() == 2;
}

std::string whyNotProduct(const Fusion& fusion, const Expression& product, bool is_rows,
                          const AxisOrder& order) {
  if (hasBatchesOutside(order)) return {};
  if (is_rows && hasLastInside(order) && isRowsTimesMatrix(fusion, product)) return {};
  return fmt::format("{} of %{} needs the batch axes outermost", product.op->name,
                     fusion.value(product.outputs[0]).name);
}

}  // namespace

bool isOtherName(const Fusion& fusion, const Expression& expr) {
  return expr.op->kind == OpKind::Set && !fusion.tensor(expr.outputs[0]).hasFixedOrder() &&
         reshardStepOf(fusion, expr).kind == ReshardStep::Kind::Same;
}

OrderRefusals::OrderRefusals(const Fusion& fusion) : fusion_(fusion), users_(fusion.users()) {}

std::string OrderRefusals::whyNot(ValueId id, const AxisOrder& order) const {
  const Expression& expr = fusion_.expr(fusion_.value(id).definition);
  if (expr.op->kind == OpKind::Matmul) {
    const std::string why = whyNotProduct(fusion_, expr, true, order);
    if (!why.empty()) return why;
  }
  return whyNotReader(id, order);
}

std::string OrderRefusals::whyNotReader(ValueId first, const AxisOrder& first_order) const {
  // Uses a list instead of recursion, because chains of views may be long.
  std::vector<std::pair<ValueId, Layout::Observed>> views{
      {first, {first_order, std::vector<bool>(first_order.size(), true)}}};
  while (!views.empty()) {
    const auto [id, layout] = std::move(views.back());
    const AxisOrder& order = layout.order;
    views.pop_back();
    for (ExprId user : users_[id]) {
      const Expression& expr = fusion_.expr(user);
      const std::string& result = fusion_.value(expr.outputs[0]).name;
      if (isCollective(fusion_, expr)) {
        return fmt::format("the collective of %{} needs its own order", result);
      }
      if (expr.op->kind == OpKind::Permute || expr.op->kind == OpKind::Slice) {
        views.emplace_back(expr.outputs[0], layoutOfView(fusion_, expr, layout));
      } else if (expr.op->kind == OpKind::Set) {
        const TensorView& copy = fusion_.tensor(expr.outputs[0]);
        if (copy.layout.needed && sameOrder(order, *copy.layout.needed, copy)) {
          return fmt::format("%{} must stay a copy in the order that a collective needs", result);
        }
        if (isOtherName(fusion_, expr)) views.emplace_back(expr.outputs[0], layout);
      } else if (expr.op->kind == OpKind::Reshape) {
        if (!isReshapeView(fusion_, expr, layout)) {
          return fmt::format("reshape %{} needs a row-major operand", result);
        }
        views.emplace_back(expr.outputs[0], layoutOfView(fusion_, expr, layout));
      } else if (expr.op->kind == OpKind::Matmul) {
        const std::string why = whyNotProduct(fusion_, expr, expr.inputs[0] == id, order);
        if (!why.empty()) return why;
      }
    }
  }
  return {};
}

}  // namespace heddle
