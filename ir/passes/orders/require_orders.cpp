#include "ir/passes/orders/require_orders.h"

#include <algorithm>
#include <map>

#include "ir/analysis/memory_order.h"
#include "ir/base/check.h"
#include "ir/graph/rewrite.h"

namespace heddle {
namespace {

// Returns whether the result of the op is a view of its operand. The operand then determines the
// order.
bool isView(const Expression& expr) { return roleOf(expr.op->kind) == OpRole::View; }

class OrderRequirer {
 public:
  explicit OrderRequirer(const Fusion& fusion) : old_(fusion), rewriter_(fusion) {}

  Fusion run() {
    rewriter_.inputs();
    for (ExprId id : old_.exprs().ids()) copy(id);
    // Create all copies before finish(), which sets the outputs to the new values of the old ones.
    // The loop after it replaces them by the copies. Several outputs may share a copy.
    std::vector<ValueId> outputs;
    for (size_t i = 0; i < old_.outputs().size(); ++i) outputs.push_back(output(i));
    Fusion result = std::move(rewriter_).finish();
    for (size_t i = 0; i < outputs.size(); ++i) result.replaceOutput(i, outputs[i]);
    return result;
  }

 private:
  void copy(ExprId id) {
    const Expression& expr = old_.expr(id);
    const ValueId result = expr.outputs[0];
    if (!isView(expr) || !old_.tensor(result).layout.required) {
      rewriter_.copy(id);
      return;
    }
    std::vector<ValueId> operands;
    for (ValueId input : expr.inputs) operands.push_back(rewriter_.at(input));
    const std::string name = rewriter_.freeName(old_.value(result).name + "_view");
    const ValueId view = rewriter_.copyAside(id, std::move(operands), name);
    rewriter_.fusion().setSharding(view, old_.tensor(result).sharding);
    rewriter_.setAs(view, result);
  }

  // Returns the new value that output `index` returns: the one that replaces the old value, or a
  // copy of it in the required order.
  ValueId output(size_t index) {
    const ValueId old = old_.outputs()[index];
    const ValueId now = rewriter_.at(old);
    const std::optional<AxisOrder>& order = old_.outputOrders()[index];
    if (!order) return now;
    if (mayRequire(now, *order) && fitsInputs(old, *order)) {
      rewriter_.fusion().layout(now).required = order;
      return now;
    }
    const auto [found, is_new] = ordered_.try_emplace({old, *order}, kNoValue);
    if (!is_new) return found->second;
    const Value& value = old_.value(old);
    std::string name = value.name;
    if (isOnlyOutput(old)) {
      rewriter_.builder().rename(now, rewriter_.freeName(value.name + "_view"));
    } else {
      name = rewriter_.freeName(value.name + "_ordered");
    }
    rewriter_.builder().name(name).line(value.line);
    found->second = rewriter_.builder().set(now);
    rewriter_.fusion().setSharding(found->second, value.tensor.sharding);
    rewriter_.fusion().layout(found->second).required = order;
    return found->second;
  }

  // Returns whether the value is no input and exactly one output returns it. A copy can then have
  // the name of the value.
  bool isOnlyOutput(ValueId old) const {
    return old_.value(old).definition != kNoExpr &&
           std::count(old_.outputs().begin(), old_.outputs().end(), old) == 1;
  }

  bool mayRequire(ValueId id, const AxisOrder& order) const {
    const Value& value = rewriter_.fusion().value(id);
    if (value.definition == kNoExpr || isView(rewriter_.fusion().expr(value.definition))) {
      return false;
    }
    return !value.tensor.layout.required || value.tensor.layout.required == order;
  }

  // Returns whether every input in which the fusion stores the value has this order.
  bool fitsInputs(ValueId old, const AxisOrder& order) const {
    const TensorView& tensor = old_.tensor(old);
    if (tensor.layout.required) return true;  // the value then has this order in any case
    for (size_t i = 0; i < old_.outputs().size(); ++i) {
      if (old_.outputs()[i] != old || !old_.reuses()[i]) continue;
      const auto& observed = old_.tensor(old_.reuses()[i]->input).layout.observed;
      const AxisOrder of_input = observed ? observed->order : rowMajor(order.size());
      if (!sameOrder(of_input, order, tensor)) return false;
    }
    return true;
  }

  const Fusion& old_;
  FusionRewriter rewriter_;
  std::map<std::pair<ValueId, AxisOrder>, ValueId> ordered_;  // copies, by old value and order
};

bool hasRequiredView(const Fusion& fusion) {
  return std::any_of(fusion.exprs().begin(), fusion.exprs().end(), [&](const Expression& expr) {
    return isView(expr) && fusion.tensor(expr.outputs[0]).layout.required;
  });
}

}  // namespace

Fusion requireOrders(Fusion fusion) {
  const auto& orders = fusion.outputOrders();
  const bool any = std::any_of(orders.begin(), orders.end(), [](const auto& o) { return o; });
  return any || hasRequiredView(fusion) ? OrderRequirer(fusion).run() : std::move(fusion);
}

void checkRequiredOrders(const Fusion& fusion) {
  for (size_t i = 0; i < fusion.outputs().size(); ++i) {
    const std::optional<AxisOrder>& required = fusion.outputOrders()[i];
    if (!required) continue;
    const Value& value = fusion.value(fusion.outputs()[i]);
    const std::optional<AxisOrder> order = elementOrder(fusion, fusion.outputs()[i]);
    HEDDLE_USER_CHECK(order && sameOrder(*order, *required, value.tensor),
                      "output {} (%{}) requires order={}, but has {}; was requireOrders skipped?",
                      i, value.name, str(*required), order ? "order=" + str(*order) : "gaps");
  }
}

}  // namespace heddle
