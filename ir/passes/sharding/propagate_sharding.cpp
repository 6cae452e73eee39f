#include "ir/passes/sharding/propagate_sharding.h"

#include <algorithm>

#include "ir/analysis/kernel_rules.h"
#include "ir/analysis/reshard_step.h"
#include "ir/base/error.h"
#include "ir/passes/sharding/local_shardings.h"

namespace heddle {
namespace {

class Propagation {
 public:
  explicit Propagation(const Fusion& fusion)
      : fusion_(fusion),
        planner_(fusion),
        users_(fusion.users()),
        is_output_(fusion.outputFlags()) {
    for (const Value& value : fusion.values()) states_.push_back(value.tensor.sharding);
  }

  // The order of the walks matters. First, operands determine the shardings of results; then
  // readers determine the shardings that are still missing. The second forward walk propagates the
  // shardings from the readers. New tensors (full, iota) that then still have no sharding follow
  // their readers, which have one by now. The values that remain are replicated.
  Fusion run() {
    forward();
    backward();
    forward();
    backwardToNew();
    fillReplicated();
    Fusion result = fusion_;
    for (ValueId id : states_.ids()) {
      if (!result.value(id).is_scalar) result.setSharding(id, states_[id]);
    }
    return result;
  }

 private:
  std::optional<Sharding>& state(ValueId id) { return states_[id]; }

  // Gives each result without a sharding the sharding that follows from its operands, if an operand
  // has a sharding.
  void forward() {
    for (const Expression& expr : fusion_.exprs()) {
      ValueId result = expr.outputs[0];
      if (isHostScalar(fusion_, expr) || state(result)) continue;
      LocalShardings plan = planner_.plan(expr, states_);
      if (plan.mesh.valid()) state(result) = resolved(plan.result);
    }
  }

  // Returns the sharding that the readers of a value want. Returns nullopt if the readers want
  // different shardings, or if none of them wants a sharding.
  std::optional<Sharding> wish(ValueId id) {
    std::optional<Sharding> common;
    for (ExprId user : users_[id]) {
      const Expression& expr = fusion_.expr(user);
      if (isHostScalar(fusion_, expr) || !state(expr.outputs[0])) continue;
      LocalShardings plan = planner_.plan(expr, states_);
      for (size_t i = 0; i < expr.inputs.size(); ++i) {
        if (expr.inputs[i] != id) continue;
        Sharding wanted = expr.op->kind == OpKind::Set ? *state(expr.outputs[0]) : plan.operands[i];
        if (common && !samePlacement(common, wanted)) return std::nullopt;
        common = wanted;
      }
    }
    return common;
  }

  // Gives values without a sharding the sharding that their readers want. A result that would be
  // partial also follows its readers, even if forward() has given it a sharding. The reduction then
  // leads directly to the wanted sharding.
  void backward() {
    for (ExprId id : fusion_.exprs().ids().reversed()) {
      const Expression& expr = fusion_.expr(id);
      if (!isHostScalar(fusion_, expr)) followReaders(expr.outputs[0], &expr);
    }
    for (ValueId input : fusion_.inputs()) {
      if (!fusion_.value(input).is_scalar) followReaders(input, nullptr);
    }
  }

  // Gives new tensors without a sharding the sharding that their readers want. New tensors are
  // full, iota and values that are computed only from them. They need no communication in any
  // sharding. This function therefore runs after the values that are not new have determined the
  // shardings of the readers.
  void backwardToNew() {
    IdVector<ValueId, bool> is_new(states_.size(), false);
    for (const Expression& expr : fusion_.exprs()) {
      is_new[expr.outputs[0]] =
          !isHostScalar(fusion_, expr) &&
          std::all_of(expr.inputs.begin(), expr.inputs.end(), [&](ValueId input) {
            return fusion_.value(input).is_scalar || is_new[input];
          });
    }
    for (ExprId id : fusion_.exprs().ids().reversed()) {
      const Expression& expr = fusion_.expr(id);
      ValueId result = expr.outputs[0];
      if (is_new[result]) followReaders(result, &expr);
    }
    forward();
  }

  bool readsTensors(ExprId id) const {
    const std::vector<ValueId>& inputs = fusion_.expr(id).inputs;
    return std::any_of(inputs.begin(), inputs.end(),
                       [&](ValueId input) { return !fusion_.value(input).is_scalar; });
  }

  void followReaders(ValueId id, const Expression* definition) {
    if (fusion_.tensor(id).sharding || is_output_[id]) return;
    if (state(id) && (definition == nullptr || !madePartial(id, *definition))) return;
    std::optional<Sharding> wanted = wish(id);
    if (wanted && !wanted->isPartial()) state(id) = std::move(wanted);
  }

  bool madePartial(ValueId id, const Expression& definition) {
    std::optional<Sharding> kept = std::exchange(state(id), std::nullopt);
    bool partial = planner_.plan(definition, states_).result.isPartial();
    state(id) = std::move(kept);
    return partial;
  }

  void fillReplicated() {
    MeshId mesh;
    for (const std::optional<Sharding>& each : states_) {
      if (!mesh.valid() && each) mesh = each->mesh;
    }
    for (ValueId id : states_.ids()) {
      const Value& value = fusion_.value(id);
      if (value.is_scalar || state(id)) continue;
      if (value.definition != kNoExpr && readsTensors(value.definition)) continue;
      state(id) = replicated(meshOfReaders(id).value_or(mesh), value.tensor.rank());
    }
    forward();
  }

  // Returns the mesh of the first reader whose result has a sharding. Inputs and new tensors that
  // have no sharding at the end are replicated on this mesh.
  std::optional<MeshId> meshOfReaders(ValueId id) {
    for (ExprId user : users_[id]) {
      const Expression& expr = fusion_.expr(user);
      if (isHostScalar(fusion_, expr)) continue;
      if (state(expr.outputs[0])) return state(expr.outputs[0])->mesh;
    }
    return std::nullopt;
  }

  const Fusion& fusion_;
  LocalShardingPlanner planner_;
  IdVector<ValueId, std::vector<ExprId>> users_;
  IdVector<ValueId, bool> is_output_;
  States states_;
};

}  // namespace

Fusion propagateSharding(Fusion fusion) {
  bool any = std::any_of(fusion.values().begin(), fusion.values().end(),
                         [](const Value& value) { return value.tensor.sharding.has_value(); });
  return any ? Propagation(fusion).run() : std::move(fusion);
}

}  // namespace heddle
