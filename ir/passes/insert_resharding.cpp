#include "ir/passes/insert_resharding.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/error.h"
#include "ir/kernel_rules.h"
#include "ir/memory_order.h"
#include "ir/passes/local_plan.h"
#include "ir/rewrite.h"
#include "ir/set_step.h"

namespace heddle {
namespace {

std::string_view suffixOf(SetStep::Kind kind) {
  switch (kind) {
    case SetStep::Kind::Slice:
      return "_block";
    case SetStep::Kind::Gather:
      return "_gathered";
    case SetStep::Kind::AllReduce:
      return "_reduced";
    case SetStep::Kind::ReduceScatter:
      return "_scattered";
    case SetStep::Kind::Same:
    case SetStep::Kind::Relayout:
    case SetStep::Kind::Compound:
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
    for (size_t i = 0; i < old_.exprs().size(); ++i) {
      ExprId id = static_cast<ExprId>(i);
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
    result.guards.insert(result.guards.end(), guards_.begin(), guards_.end());
    return result;
  }

 private:
  const Fusion& now() const { return rewriter_.fusion(); }

  void lowerSet(ExprId id, const Expression& expr) {
    ValueId from = expr.inputs[0];
    ValueId to = expr.outputs[0];
    Sharding wanted = states_[static_cast<size_t>(to)].value();
    if (samePlacement(states_[static_cast<size_t>(from)], wanted)) {
      rewriter_.copy(id);
    } else {
      chain(rewriter_.at(from), from, wanted, to, expr.line);
    }
  }

  void lowerLocal(ExprId id, const Expression& expr) {
    LocalPlan plan = planner_.plan(expr, states_);
    std::vector<ValueId> operands;
    for (size_t i = 0; i < expr.inputs.size(); ++i) {
      ValueId input = expr.inputs[i];
      operands.push_back(old_.value(input).is_scalar ? rewriter_.at(input)
                                                     : inState(input, plan.operands[i], expr.line));
    }
    ValueId result = expr.outputs[0];
    const Sharding& wanted = states_[static_cast<size_t>(result)].value();
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

  // The value in that state; made once for all readers.
  ValueId inState(ValueId old, const Sharding& wanted, int line) {
    if (samePlacement(states_[static_cast<size_t>(old)], wanted)) return rewriter_.at(old);
    std::string key = wanted.str(old_.meshes[static_cast<size_t>(wanted.mesh)]);
    auto found = moved_.find({old, key});
    if (found != moved_.end()) return found->second;
    ValueId value = chain(rewriter_.at(old), old, wanted, kNoValue, line);
    moved_[{old, key}] = value;
    return value;
  }

  // The cheapest sets from the state of `value`, a form of the old value `of`, to `wanted`. The
  // last one writes what stands for `target`, if there is one.
  ValueId chain(ValueId value, ValueId of, const Sharding& wanted, ValueId target, int line) {
    Sharding from = now().tensor(value).sharding.value();
    const std::string& name = old_.value(target == kNoValue ? of : target).name;
    checkMeshes(from, of, wanted, name, line);
    ReshardPaths::Path path = planner_.paths().find(now().tensor(value), from, wanted);
    const DeviceMesh& mesh = old_.meshes[static_cast<size_t>(wanted.mesh)];
    HEDDLE_USER_CHECK(path.possible, "%{} at line {}: no steps lead from {} to {}", name, line,
                      from.str(mesh), wanted.str(mesh));
    for (size_t i = 0; i < path.states.size(); ++i) {
      bool last = i + 1 == path.states.size();
      value = step(value, path.states[i], name, last ? target : kNoValue, line);
    }
    return value;
  }

  void checkMeshes(const Sharding& from, ValueId of, const Sharding& to, const std::string& name,
                   int line) const {
    HEDDLE_USER_CHECK(
        from.mesh == to.mesh,
        "%{} on mesh @{} to %{} on mesh @{} at line {}: moving data between meshes is "
        "not lowered",
        old_.value(of).name, old_.meshes[static_cast<size_t>(from.mesh)].name, name,
        old_.meshes[static_cast<size_t>(to.mesh)].name, line);
  }

  // One elementary step, with the copies that its memory order needs.
  ValueId step(ValueId value, const Sharding& to, const std::string& name, ValueId target,
               int line) {
    const TensorView tensor = now().tensor(value);
    SetStep step = stepBetween(tensor.sharding, to, tensor.rank(), old_.meshes);
    std::string wanted_name = name + std::string(suffixOf(step.kind));
    std::optional<AxisOrder> required =
        target == kNoValue ? std::nullopt : old_.tensor(target).layout.stride_order;
    if (!isCommunication(step.kind)) {
      if (!required) return finish(value, to, wanted_name, target, line, {});
      ValueId block = finish(value, to, wanted_name, kNoValue, line, {});
      return rewriter_.setAs(block, target);
    }
    if (step.axis >= 0) guardEven(tensor, *tensor.sharding, to, step, name, line);
    value = prepared(value, step, name, line);
    AxisOrder order = memoryOrder(now(), value).value();
    collective_inputs_.insert(baseOf(now(), value));
    if (required && !sameOrder(*required, order, tensor)) {
      ValueId received = finish(value, to, wanted_name, kNoValue, line, order);
      return rewriter_.setAs(received, target);
    }
    return finish(value, to, wanted_name, target, line, order);
  }

  ValueId finish(ValueId value, const Sharding& to, const std::string& name, ValueId target,
                 int line, const std::optional<AxisOrder>& order) {
    ValueId result =
        target == kNoValue ? rewriter_.set(value, name, line) : rewriter_.setAs(value, target);
    rewriter_.fusion().setSharding(result, to);
    Layout& layout = rewriter_.fusion().layout(result);
    if (order && !layout.stride_order) hint(layout, *order);
    return result;
  }

  static void hint(Layout& layout, const AxisOrder& order) {
    if (order == rowMajor(order.size())) {
      layout.allocation_order.reset();
    } else {
      layout.allocation_order = order;
    }
  }

  // The value lying densely, with the axis of the step outermost.
  ValueId prepared(ValueId value, const SetStep& step, const std::string& name, int line) {
    std::optional<AxisOrder> order = memoryOrder(now(), value);
    const TensorView tensor = now().tensor(value);
    if (order && (step.axis < 0 || isOutermost(*order, step.axis, tensor))) return value;
    AxisOrder wanted = rowMajor(tensor.rank());
    if (step.axis >= 0) wanted = withOutermost(wanted, step.axis);
    if (mayHint(value)) {
      hint(rewriter_.fusion().layout(value), wanted);
      return value;
    }
    ValueId packed = rewriter_.set(value, name + "_packed", line);
    rewriter_.fusion().setSharding(packed, tensor.sharding);
    hint(rewriter_.fusion().layout(packed), wanted);
    return packed;
  }

  // Whether the value is freshly computed and nobody has fixed its order.
  bool mayHint(ValueId id) const {
    const Value& value = now().value(id);
    if (value.definition == kNoExpr || value.tensor.layout.stride_order ||
        value.tensor.layout.allocation_order || collective_inputs_.count(id) != 0) {
      return false;
    }
    switch (now().expr(value.definition).op->kind) {
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
        return true;
      case OpKind::Constant:
      case OpKind::SizeOf:
      case OpKind::Reshape:
      case OpKind::Permute:
      case OpKind::Slice:
      case OpKind::Set:
        return false;
    }
    return false;
  }

  // Blocks of blocks lie one after the other without padding between only when they are even.
  void guardEven(const TensorView& tensor, const Sharding& from, const Sharding& to,
                 const SetStep& step, const std::string& name, int line) {
    size_t axis = static_cast<size_t>(step.axis);
    const auto& list =
        from.axes[axis].size() > to.axes[axis].size() ? from.axes[axis] : to.axes[axis];
    if (list.size() < 2) return;
    const DeviceMesh& mesh = old_.meshes[static_cast<size_t>(to.mesh)];
    int64_t blocks = 1;
    for (MeshAxis each : list) blocks *= mesh.size(each);
    Size rest = Size::mod(tensor.domain[axis].extent, Size(blocks));
    if (rest.isConstant(0)) return;
    std::string source =
        fmt::format("axis {} of %{} over {} devices of several axes of @{} at line {}", axis, name,
                    blocks, mesh.name, line);
    HEDDLE_USER_CHECK(!rest.isConstant(), "{}: {} does not divide evenly", source,
                      tensor.domain[axis].extent.str());
    SizeGuard guard{rest, Size(0), source};
    if (std::find(guards_.begin(), guards_.end(), guard) == guards_.end()) guards_.push_back(guard);
  }

  const Fusion& old_;
  LocalPlanner planner_;
  FusionRewriter rewriter_;
  States states_;  // per old value
  std::map<std::pair<ValueId, std::string>, ValueId> moved_;
  std::set<ValueId> collective_inputs_;  // new ids, of no permuted views; their order is fixed
  std::vector<SizeGuard> guards_;
};

}  // namespace

Fusion insertResharding(const Fusion& fusion) {
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
