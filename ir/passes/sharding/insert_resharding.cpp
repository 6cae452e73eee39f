#include "ir/passes/sharding/insert_resharding.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/analysis/kernel_rules.h"
#include "ir/analysis/memory_order.h"
#include "ir/analysis/reshard_step.h"
#include "ir/base/check.h"
#include "ir/graph/remove_dead.h"
#include "ir/graph/rewrite.h"
#include "ir/passes/sharding/local_shardings.h"
#include "ir/passes/sharding/reshape_sharding.h"
#include "ir/passes/sharding/reshard_moves.h"
#include "ir/passes/sharding/reused_inputs.h"
#include "ir/sizes/size_quotient.h"
#include "ir/types/mesh_relations.h"

namespace heddle {
namespace {

std::string_view suffixOf(ReshardStep::Kind kind) {
  switch (kind) {
    case ReshardStep::Kind::Slice:
      return "_block";
    case ReshardStep::Kind::Gather:
    case ReshardStep::Kind::GatherTo:
      return "_gathered";
    case ReshardStep::Kind::AllReduce:
      return "_reduced";
    case ReshardStep::Kind::ReduceScatter:
    case ReshardStep::Kind::ScatterFrom:
      return "_scattered";
    case ReshardStep::Kind::AllToAll:
      return "_exchanged";
    case ReshardStep::Kind::Broadcast:
    case ReshardStep::Kind::Transfer:
      return "_sent";
    case ReshardStep::Kind::Same:
    case ReshardStep::Kind::Relayout:
    case ReshardStep::Kind::Compound:
      break;
  }
  return "_moved";
}

class Resharding {
 public:
  explicit Resharding(const Fusion& fusion) : old_(fusion), planner_(fusion), rewriter_(fusion) {
    for (const Value& value : fusion.values()) states_.push_back(value.tensor.sharding);
  }

  Fusion run() {
    rewriter_.inputs();
    for (ExprId id : old_.exprs().ids()) {
      const Expression& expr = old_.expr(id);
      if (isHostScalar(old_, expr)) {
        rewriter_.copy(id);
      } else if (expr.op->kind == OpKind::Set) {
        lowerSet(id, expr);
      } else {
        lowerLocal(id, expr);
      }
    }
    Fusion result = std::move(rewriter_).finish();
    if (remade_) result = removeDead(result);  // a full or iota may have no readers now
    result.guards.insert(result.guards.end(), guards_.begin(), guards_.end());
    if (!moves_.empty()) result.annotate(kReshardingAnnotation, std::move(moves_));
    return result;
  }

 private:
  const Fusion& now() const { return rewriter_.fusion(); }

  void lowerSet(ExprId id, const Expression& expr) {
    ValueId from = expr.inputs[0];
    ValueId to = expr.outputs[0];
    Sharding wanted = states_[to].value();
    if (samePlacement(states_[from], wanted)) {
      rewriter_.copy(id);
    } else {
      chain(rewriter_.at(from), from, wanted, to, expr.line);
    }
  }

  void lowerLocal(ExprId id, const Expression& expr) {
    LocalShardings plan = planner_.plan(expr, states_);
    if (expr.op->kind == OpKind::Reshape) {
      checkReshapeSharding(old_, expr, plan.operands[0], planner_.asked(expr.inputs[0]), guards_);
    }
    std::vector<ValueId> operands;
    for (size_t i = 0; i < expr.inputs.size(); ++i) {
      ValueId input = expr.inputs[i];
      operands.push_back(old_.value(input).is_scalar ? rewriter_.at(input)
                                                     : inState(input, plan.operands[i], expr.line));
    }
    ValueId result = expr.outputs[0];
    const Sharding& wanted = states_[result].value();
    if (samePlacement(plan.result, wanted)) {
      rewriter_.copyOn(id, std::move(operands));
      return;
    }
    const char* suffix = plan.result.isPartial() ? "_partial" : "_local";
    ValueId aside = rewriter_.copyAside(id, std::move(operands),
                                        rewriter_.freeName(old_.value(result).name + suffix));
    rewriter_.fusion().setSharding(aside, plan.result);
    chain(aside, result, wanted, result, expr.line);
  }

  // Returns the value in the wanted sharding. All readers that need this sharding share the moved
  // value.
  ValueId inState(ValueId old, const Sharding& wanted, int line) {
    if (samePlacement(states_[old], wanted)) return rewriter_.at(old);
    std::string key = wanted.str(old_.meshes[wanted.mesh]);
    auto found = moved_.find({old, key});
    if (found != moved_.end()) return found->second;
    ValueId value =
        isNew(old) ? remade(old, wanted) : chain(rewriter_.at(old), old, wanted, kNoValue, line);
    moved_[{old, key}] = value;
    return value;
  }

  // Returns whether the value is a full or an iota. These values are computed again in the wanted
  // sharding, because this is cheaper than moving them.
  bool isNew(ValueId old) const {
    const ExprId definition = old_.value(old).definition;
    if (definition == kNoExpr) return false;
    const OpKind kind = old_.expr(definition).op->kind;
    return kind == OpKind::Full || kind == OpKind::Iota;
  }

  ValueId remade(ValueId old, const Sharding& wanted) {
    remade_ = true;
    const Value& value = old_.value(old);
    std::vector<ValueId> operands;
    for (ValueId input : old_.expr(value.definition).inputs)
      operands.push_back(rewriter_.at(input));
    const ValueId again = rewriter_.copyAside(value.definition, std::move(operands),
                                              rewriter_.freeName(value.name + "_again"));
    rewriter_.fusion().setSharding(again, wanted);
    return again;
  }

  // Appends the cheapest path of `set` expressions from the sharding of `value` to `wanted`.
  // `value` contains the data of `of`, a value of the original fusion. If `target` is valid, the
  // result of the last `set` replaces the value `target` of the original fusion.
  ValueId chain(ValueId value, ValueId of, const Sharding& wanted, ValueId target, int line) {
    Sharding from = now().tensor(value).sharding.value();
    const std::string& name = old_.value(target == kNoValue ? of : target).name;
    const TensorView tensor = now().tensor(value);
    ReshardPaths::Path path = planner_.paths().find(tensor, from, wanted);
    HEDDLE_USER_CHECK(
        path.possible,
        "%{} at line {}: no steps lead from {} to {}; no step makes a value partial{}", name, line,
        from.str(meshOf(from)), wanted.str(meshOf(wanted)),
        target == kNoValue ? "" : reuseOf(old_, target));
    remember(tensor, from, wanted, path, name);
    for (size_t i = 0; i < path.states.size(); ++i) {
      bool last = i + 1 == path.states.size();
      value = step(value, path.states[i], name, last ? target : kNoValue, line);
    }
    return value;
  }

  const DeviceMesh& meshOf(const Sharding& state) const { return old_.meshes[state.mesh]; }

  // Records the move and its alternatives for dumpResharding().
  void remember(const TensorView& tensor, const Sharding& from, const Sharding& wanted,
                const ReshardPaths::Path& path, const std::string& name) {
    const auto told = [&](const ReshardPaths::Path& way) {
      ReshardMove::Way result{{}, way.bytes};
      Sharding at = from;
      for (const Sharding& next : way.states) {
        result.steps.push_back(describeStep(stepBetween(at, next, tensor, old_.meshes)));
        at = next;
      }
      return result;
    };
    ReshardMove move{name, from.str(meshOf(from)), wanted.str(meshOf(wanted)), told(path), {}};
    for (const auto& way : planner_.paths().alternatives(tensor, from, wanted, kMaxAlternatives)) {
      move.alternatives.push_back(told(way));
    }
    moves_.push_back(std::move(move));
  }

  // Appends one step. Also appends the copies that the step needs: they bring operand and result
  // into the required memory orders, or replace a view that might outlive its operand (outlives()).
  ValueId step(ValueId value, const Sharding& to, const std::string& name, ValueId target,
               int line) {
    const TensorView tensor = now().tensor(value);
    ReshardStep step = stepBetween(tensor.sharding, to, tensor, old_.meshes);
    std::string wanted_name = name + std::string(suffixOf(step.kind));
    std::optional<AxisOrder> required =
        target == kNoValue ? std::nullopt : old_.tensor(target).layout.required;
    if (!isCommunication(step.kind)) {
      if (!required && !outlives(value, to))
        return finish(value, to, wanted_name, target, line, {});
      ValueId block = finish(value, to, wanted_name, kNoValue, line, {});
      if (target != kNoValue) return rewriter_.setAs(block, target);
      return finish(block, to, name + "_here", kNoValue, line, {});
    }
    addMesh(step);
    value = prepared(value, step, name, line);
    const std::optional<AxisOrder> known = memoryOrder(now(), value);
    HEDDLE_CHECK(known.has_value(), "%{} has no memory order", now().value(value).name);
    AxisOrder order = *known;
    collective_inputs_.insert(viewedValueOf(now(), value));
    if (pads(step, tensor)) padded_.insert(baseOf(now(), value));
    // The result of an all-to-all can have any memory order, because a kernel after the all-to-all
    // reorders the blocks.
    if (step.kind == ReshardStep::Kind::AllToAll) {
      if (!required || !hasGaps(step, *tensor.sharding, old_.tensor(target)))
        return finish(value, to, wanted_name, target, line, {});
      return rewriter_.setAs(finish(value, to, wanted_name, kNoValue, line, {}), target);
    }
    if (required && !sameOrder(*required, order, tensor)) {
      ValueId received = finish(value, to, wanted_name, kNoValue, line, order);
      return rewriter_.setAs(received, target);
    }
    return finish(value, to, wanted_name, target, line, order);
  }

  // Returns whether a view of the value might outlive the value. This is possible if the view is on
  // another mesh, and the value is neither an input nor a permuted view of an input. The view would
  // keep the memory alive only on the ranks of its mesh, but all ranks must free a buffer at the
  // same instruction.
  bool outlives(ValueId value, const Sharding& to) const {
    return now().tensor(value).sharding->mesh != to.mesh &&
           now().value(baseOf(now(), value)).definition != kNoExpr;
  }

  // Adds the mesh of the step's team to the meshes of the fusion, if no mesh has the same devices.
  // If the name of the new mesh is taken, a number is appended to it.
  void addMesh(const ReshardStep& step) {
    Meshes& meshes = rewriter_.fusion().meshes;
    if (findMesh(meshes, step.mesh).valid()) return;
    DeviceMesh mesh = step.mesh;
    const auto taken = [&](const DeviceMesh& other) { return other.name == mesh.name; };
    for (int i = 2; std::any_of(meshes.begin(), meshes.end(), taken); ++i) {
      mesh.name = fmt::format("{}_{}", step.mesh.name, i);
    }
    meshes.push_back(std::move(mesh));
  }

  ValueId finish(ValueId value, const Sharding& to, const std::string& name, ValueId target,
                 int line, const std::optional<AxisOrder>& order) {
    ValueId result =
        target == kNoValue ? rewriter_.set(value, name, line) : rewriter_.setAs(value, target);
    rewriter_.fusion().setSharding(result, to);
    Layout& layout = rewriter_.fusion().layout(result);
    if (order && !layout.required) need(layout, *order);
    return result;
  }

  static void need(Layout& layout, const AxisOrder& order) {
    layout.needed.reset();
    if (order != rowMajor(order.size())) layout.needed = order;
  }

  // Returns a value with the data of `value`, without gaps. If the step has an axis
  // (ReshardStep::axis), this axis is outermost in memory. The result is a copy, or `value` itself.
  // In the second case, the function may have set Layout::needed of `value`.
  ValueId prepared(ValueId value, const ReshardStep& step, const std::string& name, int line) {
    const TensorView tensor = now().tensor(value);
    const bool conflict = sizesConflict(value, step, tensor);
    std::optional<AxisOrder> order = memoryOrder(now(), value);
    const bool fits = order && (step.axis < 0 || isOutermost(*order, step.axis, tensor));
    if (fits && !conflict) return value;
    AxisOrder wanted = rowMajor(tensor.rank());
    if (step.axis >= 0) wanted = withOutermost(wanted, step.axis);
    if (!conflict && mayOrder(value)) {
      need(rewriter_.fusion().layout(value), wanted);
      return value;
    }
    const ValueId packed = copied(value, name, line, fits);
    rewriter_.fusion().setSharding(packed, tensor.sharding);
    need(rewriter_.fusion().layout(packed), wanted);
    return packed;
  }

  // Returns a copy. If the memory order does not change, the copy is a cast to the same dtype,
  // because a `set` would then copy nothing.
  ValueId copied(ValueId value, const std::string& name, int line, bool same_order) {
    if (!same_order) return rewriter_.set(value, name + "_packed", line);
    FusionBuilder& b = rewriter_.builder();
    b.name(rewriter_.freeName(name + "_packed")).line(line);
    return b.apply("cast", {value}, {{"dtype", now().tensor(value).dtype}});
  }

  // Returns whether the step needs a copy of the value because of padding. This is the case if an
  // earlier collective has padded the memory of the value. It is also the case if the step needs
  // padding, but the value is a view or the result of a collective, or an earlier collective reads
  // its memory.
  bool sizesConflict(ValueId value, const ReshardStep& step, const TensorView& tensor) const {
    const ValueId base = baseOf(now(), value);
    if (step.kind == ReshardStep::Kind::AllReduce)
      return false;  // an allreduce accepts padded and unpadded memory
    return padded_.count(base) != 0 ||
           (pads(step, tensor) && (collective_inputs_.count(base) != 0 || isView(value)));
  }

  // Returns whether the value is a view, another name of a value, or the result of a collective.
  // Its memory is then not padded for this step.
  bool isView(ValueId value) const {
    const ExprId definition = now().value(value).definition;
    if (definition == kNoExpr) return false;
    const Expression& expr = now().expr(definition);
    const OpRole role = roleOf(expr.op->kind);
    if (role != OpRole::Set) return role == OpRole::View;
    return reshardStepOf(now(), expr).kind != ReshardStep::Kind::Relayout;
  }

  // Returns whether the step is a collective that splits an axis into blocks that are not known to
  // be equal. The memory of the operand is then padded to blocks of equal size.
  bool pads(const ReshardStep& step, const TensorView& tensor) const {
    const bool cuts = step.kind == ReshardStep::Kind::ReduceScatter ||
                      step.kind == ReshardStep::Kind::AllToAll ||
                      step.kind == ReshardStep::Kind::ScatterFrom;
    if (!cuts) return false;
    int64_t blocks = blocksOf(step);
    const size_t axis = step.axis;
    for (MeshAxis each : tensor.sharding->axes[axis]) {
      blocks *= old_.meshes[tensor.sharding->mesh].size(each);
    }
    return !remainder(tensor.domain[axis].extent, blocks).isConstant(0);
  }

  // Returns whether the pass may choose the memory order of the value. A kernel or a library must
  // compute the value. The value must have no required and no needed order (Layout), and no earlier
  // step may have fixed its order (collective_inputs_).
  bool mayOrder(ValueId id) const {
    const Value& value = now().value(id);
    if (value.definition == kNoExpr || value.tensor.hasFixedOrder() ||
        collective_inputs_.count(id) != 0) {
      return false;
    }
    const OpRole role = roleOf(now().expr(value.definition).op->kind);
    return role == OpRole::Kernel || role == OpRole::Library;
  }

  static constexpr size_t kMaxAlternatives = 3;

  const Fusion& old_;
  LocalShardingPlanner planner_;
  FusionRewriter rewriter_;
  States states_;  // per old value
  std::map<std::pair<ValueId, std::string>, ValueId> moved_;
  // For each operand of a collective: the value of which it is a view (viewedValueOf()), in the new
  // fusion. The memory order of these values is final.
  std::set<ValueId> collective_inputs_;
  std::set<ValueId> padded_;  // baseOf() of the operands of collectives whose memory is padded
  std::vector<SizeGuard> guards_;
  std::vector<ReshardMove> moves_;
  bool remade_ = false;
};

}  // namespace

Fusion insertResharding(Fusion fusion) {
  bool any = std::any_of(fusion.values().begin(), fusion.values().end(),
                         [](const Value& value) { return value.tensor.sharding.has_value(); });
  if (!any) return fusion;
  for (const Value& value : fusion.values()) {
    HEDDLE_USER_CHECK(value.is_scalar || value.tensor.sharding,
                      "insertResharding: %{} has no sharding; was propagateSharding skipped?",
                      value.name);
  }
  return Resharding(fusion).run();
}

}  // namespace heddle
