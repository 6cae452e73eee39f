#include "ir/passes/orders/order_for_reshapes.h"

#include <algorithm>
#include <map>
#include <optional>

#include "ir/analysis/memory_order.h"
#include "ir/passes/orders/order_notes.h"
#include "ir/passes/orders/order_refusals.h"

namespace heddle {
namespace {

class OrderChooser {
 public:
  explicit OrderChooser(const Fusion& fusion)
      : fusion_(fusion),
        users_(fusion.users()),
        is_output_(fusion.outputFlags()),
        layouts_(elementLayouts(fusion)),
        refusals_(fusion) {}

  Fusion run() {
    for (const Expression& expr : fusion_.exprs()) {
      if (expr.op->kind != OpKind::Reshape) continue;
      const std::optional<Layout::Observed>& layout = layouts_[expr.inputs[0]];
      if (layout && isReshapeView(fusion_, expr, *layout)) {
        // The reshape already is a view, so the memory order of the value that it views must not
        // change.
        wanted_[baseOf(fusion_, expr.inputs[0])].reset();
      } else {
        want(expr);
      }
    }
    Fusion result = fusion_;
    std::vector<OrderNote> notes;
    for (const auto& [base, order] : wanted_) {
      if (!order || !isFree(base, *order)) continue;
      result.layout(base).hint = order;
      notes.push_back({fusion_.value(base).name, *order, "reshape %" + reshapes_.at(base), {}});
    }
    addOrderNotes(result, notes);
    return result;
  }

 private:
  // Records the order that the base must have so that the operand of the reshape is row-major. The
  // base is the value of which the operand is a permuted view. Records nothing if the operand is no
  // permuted view.
  void want(const Expression& reshape) {
    const ValueId view = reshape.inputs[0];
    const ValueId base = baseOf(fusion_, view);
    if (base == view) return;
    AxisOrder order = rowMajor(fusion_.tensor(view).rank());
    for (ValueId id = view; id != base;) {
      const Expression& permute = fusion_.expr(fusion_.value(id).definition);
      const auto& axes = permute.attr<std::vector<int64_t>>("axes");
      for (int64_t& axis : order) axis = axes[axis];
      id = permute.inputs[0];
    }
    reshapes_.try_emplace(base, fusion_.value(reshape.outputs[0]).name);
    const auto [found, is_new] = wanted_.try_emplace(base, order);
    if (!is_new && found->second != order) found->second.reset();
  }

  bool isFree(ValueId id, const AxisOrder& order) const {
    const Value& value = fusion_.value(id);
    if (value.definition == kNoExpr || is_output_[id]) return false;
    if (value.tensor.hasFixedOrder() || value.tensor.layout.hint) return false;
    if (order == rowMajor(order.size())) return false;
    return canStoreIn(order, fusion_.expr(value.definition)) &&
           refusals_.whyNotReader(id, order).empty() &&
           std::all_of(users_[id].begin(), users_[id].end(),
                       [&](ExprId user) { return fusion_.expr(user).op->kind == OpKind::Permute; });
  }

  static bool canStoreIn(const AxisOrder& order, const Expression& expr) {
    switch (expr.op->kind) {
      case OpKind::Pointwise:
      case OpKind::Reduction:
        return true;
      case OpKind::Matmul:
        return order.back() + 1 == static_cast<int64_t>(order.size());
      default:
        return false;
    }
  }

  const Fusion& fusion_;
  const IdVector<ValueId, std::vector<ExprId>> users_;
  const IdVector<ValueId, bool> is_output_;
  const ElementLayouts layouts_;
  const OrderRefusals refusals_;
  std::map<ValueId, std::optional<AxisOrder>> wanted_;  // nullopt: reshapes need different orders
  std::map<ValueId, std::string> reshapes_;             // name of the first reshape of each base
};

}  // namespace

Fusion orderForReshapes(const Fusion& fusion) { return OrderChooser(fusion).run(); }

}  // namespace heddle
