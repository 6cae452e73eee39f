#include "ir/passes/order_for_reshapes.h"

#include <algorithm>
#include <map>
#include <optional>

#include "ir/analysis/memory_order.h"

namespace heddle {
namespace {

class OrderChooser {
 public:
  explicit OrderChooser(const Fusion& fusion)
      : fusion_(fusion), users_(fusion.users()), is_output_(fusion.outputFlags()) {}

  Fusion run() {
    for (const Expression& expr : fusion_.exprs()) {
      if (expr.op->kind == OpKind::Reshape) want(expr.inputs[0]);
    }
    Fusion result = fusion_;
    for (const auto& [base, order] : wanted_) {
      if (order && isFree(base, *order)) result.layout(base).allocation_order = order;
    }
    return result;
  }

 private:
  // Notes the order of the base of `view` with which `view` is row-major.
  void want(ValueId view) {
    const ValueId base = baseOf(fusion_, view);
    if (base == view) return;
    AxisOrder order = rowMajor(fusion_.tensor(view).rank());
    for (ValueId id = view; id != base;) {
      const Expression& permute = fusion_.expr(fusion_.value(id).definition);
      const auto& axes = permute.attr<std::vector<int64_t>>("axes");
      for (int64_t& axis : order) axis = axes[static_cast<size_t>(axis)];
      id = permute.inputs[0];
    }
    const auto [found, is_new] = wanted_.try_emplace(base, order);
    if (!is_new && found->second != order) found->second.reset();
  }

  bool isFree(ValueId id, const AxisOrder& order) const {
    const Value& value = fusion_.value(id);
    const Layout& layout = value.tensor.layout;
    if (value.definition == kNoExpr || is_output_[id]) return false;
    if (layout.stride_order || layout.allocation_order) return false;
    if (order == rowMajor(order.size())) return false;
    return canStoreIn(order, fusion_.expr(value.definition)) &&
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
  std::map<ValueId, std::optional<AxisOrder>> wanted_;  // nullopt: reshapes need different orders
};

}  // namespace

Fusion orderForReshapes(const Fusion& fusion) { return OrderChooser(fusion).run(); }

}  // namespace heddle
