#include "ir/passes/sharding/join_reductions.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "ir/analysis/memory_order.h"
#include "ir/analysis/reshard_step.h"
#include "ir/base/check.h"
#include "ir/graph/rewrite.h"
#include "ir/passes/sharding/reshard_moves.h"

namespace heddle {
namespace {

// For each value of the original fusion that a collective sums across devices, or that is a joined
// sum of such values: the step that reduces it. nullopt for all other values.
using Steps = IdVector<ValueId, std::optional<ReshardStep>>;

class ReductionJoiner {
 public:
  explicit ReductionJoiner(const Fusion& fusion)
      : old_(fusion),
        users_(fusion.users()),
        is_output_(fusion.outputFlags()),
        steps_(fusion.values().size()),
        joined_(fusion.exprs().size(), false),
        partial_(fusion.values().size(), kNoValue),
        rewriter_(fusion) {
    for (ExprId id : fusion.exprs().ids()) {
      const Expression& expr = fusion.expr(id);
      const auto result = expr.outputs[0];
      if (expr.op->kind == OpKind::Set) steps_[result] = reductionOf(expr);
      if (!isJoined(expr)) continue;
      joined_[id] = true;
      steps_[result] = stepOf(expr.inputs[0]);
    }
  }

  bool any() const { return std::find(joined_.begin(), joined_.end(), true) != joined_.end(); }

  Fusion run() {
    rewriter_.inputs();
    for (ExprId id : old_.exprs().ids()) {
      const Expression& expr = old_.expr(id);
      const ValueId result = expr.outputs[0];
      if (joined_[id]) {
        addPartials(id, expr);
      } else if (waits(result)) {
        partial_[result] = rewriter_.at(expr.inputs[0]);
      } else {
        rewriter_.copy(id);
      }
    }
    Fusion result = std::move(rewriter_).finish();
    tell(result);
    return result;
  }

 private:
  // Returns the name of the sum that contains this value. The sum is reduced instead of the value.
  const std::string& reducedFor(ValueId id) const {
    while (waits(id)) {
      id = old_.expr(users_[id].front()).outputs[0];
    }
    return old_.value(id).name;
  }

  // Updates the list of moves (reshard_moves.h). If several moves were joined, only the first of
  // them stays in the list.
  void tell(Fusion& fusion) const {
    auto moves = fusion.annotation<std::vector<ReshardMove>>(kReshardingAnnotation);
    if (!moves) return;
    std::unordered_map<std::string, ValueId> waiting;
    for (ValueId id : old_.values().ids()) {
      if (waits(id)) waiting.emplace(old_.value(id).name, id);
    }
    std::set<std::string> told;
    std::erase_if(*moves, [&](ReshardMove& move) {
      const auto found = waiting.find(move.value);
      if (found == waiting.end()) return false;
      move.value = reducedFor(found->second);
      return !told.insert(move.value).second;
    });
    fusion.annotate(kReshardingAnnotation, std::move(*moves));
  }

  const std::optional<ReshardStep>& stepOf(ValueId id) const { return steps_[id]; }

  std::optional<ReshardStep> reductionOf(const Expression& set) const {
    ReshardStep step = reshardStepOf(old_, set);
    const bool reduces =
        step.kind == ReshardStep::Kind::AllReduce || step.kind == ReshardStep::Kind::ReduceScatter;
    if (!reduces || step.reduce != ReduceOp::Sum) return std::nullopt;
    return step;
  }

  bool isReadOnce(ValueId id) const { return users_[id].size() == 1 && !is_output_[id]; }

  // Returns whether the sum may be the operand of a collective, directly or through a view. Joining
  // would make the sum the result of a collective. Its memory would be padded for this collective,
  // but the collective that reads it may need padding of a different size.
  bool feedsCollective(ValueId id) const {
    const std::vector<ExprId>& users = users_[id];
    return std::any_of(users.begin(), users.end(), [&](ExprId user) {
      const Expression& expr = old_.expr(user);
      return expr.op->kind != OpKind::Pointwise && expr.op->kind != OpKind::Reduction &&
             expr.op->kind != OpKind::Matmul && expr.op->kind != OpKind::Broadcast;
    });
  }

  bool isJoined(const Expression& expr) const {
    if (expr.op->name != "add" && expr.op->name != "sub") return false;
    const ValueId a = expr.inputs[0];
    const ValueId b = expr.inputs[1];
    const TensorView& sum = old_.tensor(expr.outputs[0]);
    if (a == b || !stepOf(a) || !stepOf(b) || *stepOf(a) != *stepOf(b)) return false;
    const auto fits = [&](ValueId id) {
      const TensorView& tensor = old_.tensor(id);
      return isReadOnce(id) && tensor.dtype == sum.dtype && tensor.domain == sum.domain &&
             samePlacement(tensor.sharding, sum.sharding);
    };
    return fits(a) && fits(b) && sum.dtype != DType::Bool && !sum.layout.required &&
           !feedsCollective(expr.outputs[0]);
  }

  // Returns whether the value is reduced later, as a part of a sum.
  bool waits(ValueId id) const {
    if (!stepOf(id) || !isReadOnce(id)) return false;
    return joined_[users_[id].front()];
  }

  void addPartials(ExprId id, const Expression& expr) {
    const ValueId a = partial_[expr.inputs[0]];
    const ValueId b = partial_[expr.inputs[1]];
    const ValueId result = expr.outputs[0];
    const ValueId sum =
        rewriter_.copyAside(id, {a, b}, rewriter_.freeName(old_.value(result).name + "_partial"));
    Fusion& fusion = rewriter_.fusion();
    fusion.setSharding(sum, fusion.tensor(a).sharding);
    // The collective does not reorder memory, so its operand (the sum) and its result have the same
    // memory order as the partial values.
    const std::optional<AxisOrder> order = memoryOrder(fusion, a);
    HEDDLE_CHECK(order.has_value(), "%{} has no memory order", fusion.value(a).name);
    std::optional<AxisOrder> needed;
    if (*order != rowMajor(order->size())) needed = order;
    fusion.layout(sum).needed = needed;
    if (waits(result)) {
      partial_[result] = sum;
      return;
    }
    fusion.layout(rewriter_.setAs(sum, result)).needed = needed;
  }

  const Fusion& old_;
  IdVector<ValueId, std::vector<ExprId>> users_;
  IdVector<ValueId, bool> is_output_;
  Steps steps_;
  IdVector<ExprId, bool> joined_;  // whether the pass lets the expression add partial values
  // For each value of the original fusion that is reduced later as a part of a sum: its partial
  // value in the new fusion.
  IdVector<ValueId, ValueId> partial_;
  FusionRewriter rewriter_;
};

}  // namespace

Fusion joinReductions(Fusion fusion) {
  ReductionJoiner joiner(fusion);
  return joiner.any() ? joiner.run() : std::move(fusion);
}

}  // namespace heddle
