#include "ir/passes/sharding/split_linear.h"

#include <algorithm>

#include "ir/composite/composite.h"
#include "ir/graph/rewrite.h"
#include "ir/passes/sharding/local_shardings.h"

namespace heddle {
namespace {

class LinearSplitter {
 public:
  explicit LinearSplitter(const Fusion& fusion)
      : old_(fusion), planner_(fusion), rewriter_(fusion) {
    for (const Value& value : fusion.values()) states_.push_back(value.tensor.sharding);
  }

  Fusion run() {
    rewriter_.inputs();
    for (ExprId id : old_.exprs().ids()) {
      if (mustSplit(old_.expr(id))) {
        split(old_.expr(id));
      } else {
        rewriter_.copy(id);
      }
    }
    return std::move(rewriter_).finish();
  }

  bool any() const {
    return std::any_of(old_.exprs().begin(), old_.exprs().end(),
                       [&](const Expression& expr) { return mustSplit(expr); });
  }

 private:
  bool mustSplit(const Expression& expr) const {
    if (expr.op->kind != OpKind::Matmul) return false;
    if (expr.inputs.size() == 2 && expr.find("activation") == nullptr) return false;
    const LocalShardings plan = planner_.plan(expr, states_);
    return plan.mesh.valid() && plan.result.isPartial();
  }

  void split(const Expression& expr) {
    FusionBuilder& b = rewriter_.builder();
    const ValueId result = expr.outputs[0];
    const std::string& name = old_.value(result).name;
    const auto first = rewriter_.fusion().values().endId();
    const Attr* activation = expr.find("activation");
    auto attrs = expr.attrs;
    std::erase_if(attrs, [](const auto& attr) { return attr.first == "activation"; });

    b.name(rewriter_.freeName(name + "_product")).line(expr.line);
    ValueId value =
        b.apply(expr.op->name, {rewriter_.at(expr.inputs[0]), rewriter_.at(expr.inputs[1])}, attrs);
    if (expr.inputs.size() > 2) {
      b.name(activation == nullptr ? name : rewriter_.freeName(name + "_biased"));
      value = b.pointwise("add", {value, rewriter_.at(expr.inputs[2])});
    }
    if (activation != nullptr) {
      b.name(name);
      value = std::get<std::string>(*activation) == "relu" ? b.pointwise("relu", {value})
                                                           : gelu(b, value, GeluKind::Tanh);
    }
    place(first, result);
    rewriter_.adopt(value, result);
  }

  // Gives the sharding of the result to every tensor with an id of at least `first`. Broadcast axes
  // of these tensors stay unsplit.
  void place(ValueId first, ValueId result) {
    Fusion& fusion = rewriter_.fusion();
    const Sharding& wanted = states_[result].value();
    for (ValueId id : IdRange(first, fusion.values().endId())) {
      if (fusion.value(id).is_scalar) continue;
      Sharding sharding = wanted;
      for (size_t axis = 0; axis < fusion.tensor(id).rank(); ++axis) {
        if (fusion.tensor(id).domain[axis].kind == IterKind::Broadcast) sharding.axes[axis].clear();
      }
      fusion.setSharding(id, std::move(sharding));
    }
  }

  const Fusion& old_;
  LocalShardingPlanner planner_;
  FusionRewriter rewriter_;
  States states_;  // per value of the original fusion
};

}  // namespace

Fusion splitLinear(Fusion fusion) {
  LinearSplitter splitter(fusion);
  return splitter.any() ? splitter.run() : std::move(fusion);
}

}  // namespace heddle
