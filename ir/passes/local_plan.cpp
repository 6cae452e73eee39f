#include "ir/passes/local_plan.h"

#include <algorithm>

#include "ir/error.h"
#include "ir/set_step.h"

namespace heddle {
namespace {

using SpaceAxes = std::vector<std::vector<MeshAxis>>;

const std::optional<Sharding>& stateOf(const States& states, ValueId id) {
  return states[static_cast<size_t>(id)];
}

// Whether the output has axes along which no operand moves, but of which the elements come from
// one.
bool cutsOrRegroups(OpKind kind) {
  return kind == OpKind::Reshape || kind == OpKind::Slice || kind == OpKind::Index ||
         kind == OpKind::Scan || kind == OpKind::Scatter;
}

// Which axes of the space may be spread over devices: those whose blocks every operand along them
// can give. A broadcast axis has no blocks.
std::vector<bool> spreadable(const Fusion& fusion, const Expression& expr, const AxisMap& map) {
  std::vector<bool> may(map.space.size(), false);
  bool regroups = cutsOrRegroups(expr.op->kind);
  for (size_t s = 0; s < map.space.size(); ++s) {
    bool read = !regroups;
    for (const std::vector<int>& axes : map.inputs) {
      read = read || std::find(axes.begin(), axes.end(), static_cast<int>(s)) != axes.end();
    }
    bool combines = map.space[s].kind != IterKind::Reduction || expr.op->kind == OpKind::Matmul ||
                    expr.op->reduce_op.has_value();
    may[s] = read && combines && map.space[s].kind != IterKind::Broadcast;
  }
  for (size_t i = 0; i < expr.inputs.size(); ++i) {
    for (size_t axis = 0; axis < map.inputs[i].size(); ++axis) {
      const IterDomain& domain = fusion.tensor(expr.inputs[i]).domain[axis];
      int s = map.inputs[i][axis];
      if (s != AxisMap::kNone && domain.kind == IterKind::Broadcast) {
        may[static_cast<size_t>(s)] = false;
      }
    }
  }
  return may;
}

// Spreads the space as the state wants, where that is still free. Returns whether all of it was.
bool grant(const Sharding& state, const std::vector<int>& axes, const std::vector<bool>& may,
           SpaceAxes& space) {
  auto taken = [&](MeshAxis mesh_axis, size_t except) {
    for (size_t s = 0; s < space.size(); ++s) {
      if (s == except) continue;
      if (std::find(space[s].begin(), space[s].end(), mesh_axis) != space[s].end()) return true;
    }
    return false;
  };
  bool all = true;
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    const std::vector<MeshAxis>& list = state.axes[axis];
    if (list.empty() || axes[axis] == AxisMap::kNone) continue;
    size_t s = static_cast<size_t>(axes[axis]);
    if (!may[s] || space[s] == list) continue;
    bool free = space[s].empty() && std::none_of(list.begin(), list.end(),
                                                 [&](MeshAxis each) { return taken(each, s); });
    if (free) space[s] = list;
    all = all && free;
  }
  return all;
}

Sharding stateFrom(const TensorView& tensor, const std::vector<int>& axes, const SpaceAxes& space,
                   int mesh) {
  Sharding state = replicated(mesh, tensor.rank());
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    if (axes[axis] == AxisMap::kNone || tensor.domain[axis].kind == IterKind::Broadcast) continue;
    state.axes[axis] = space[static_cast<size_t>(axes[axis])];
  }
  return state;
}

ReduceOp combinationOf(const Expression& expr) {
  return expr.op->kind == OpKind::Matmul ? ReduceOp::Sum : expr.op->reduce_op.value();
}

}  // namespace

int LocalPlanner::meshOf(const Expression& expr, const States& states) const {
  ValueId first = kNoValue;
  auto check = [&](ValueId id) {
    if (!stateOf(states, id)) return;
    if (first == kNoValue) first = id;
    int mine = stateOf(states, id)->mesh;
    int other = stateOf(states, first)->mesh;
    HEDDLE_USER_CHECK(mine == other,
                      "{} at line {}: %{} is on mesh @{} and %{} on mesh @{}: moving data between "
                      "meshes is not lowered",
                      expr.op->name, expr.line, fusion_.value(first).name,
                      fusion_.meshes[static_cast<size_t>(other)].name, fusion_.value(id).name,
                      fusion_.meshes[static_cast<size_t>(mine)].name);
  };
  for (ValueId input : expr.inputs) check(input);
  check(expr.outputs[0]);
  return first == kNoValue ? -1 : stateOf(states, first)->mesh;
}

std::vector<LocalPlanner::Asker> LocalPlanner::askersOf(const Expression& expr, const AxisMap& map,
                                                        const States& states) const {
  std::vector<Asker> askers;
  for (size_t i = 0; i < expr.inputs.size(); ++i) {
    if (stateOf(states, expr.inputs[i])) askers.push_back({expr.inputs[i], &map.inputs[i]});
  }
  if (askers.size() > 1) {
    std::stable_sort(askers.begin(), askers.end(), [&](const Asker& a, const Asker& b) {
      return paths_.bytes(fusion_.tensor(a.value)) > paths_.bytes(fusion_.tensor(b.value));
    });
  }
  if (stateOf(states, expr.outputs[0])) askers.push_back({expr.outputs[0], &map.outputs[0]});
  return askers;
}

LocalPlan LocalPlanner::planFor(const Expression& expr, const AxisMap& map, const States& states,
                                const std::vector<Asker>& askers, bool& conflict) const {
  LocalPlan plan;
  plan.mesh = stateOf(states, askers.front().value)->mesh;
  SpaceAxes space(map.space.size());
  std::vector<bool> may = spreadable(fusion_, expr, map);
  conflict = false;
  for (const Asker& asker : askers) {
    conflict = !grant(*stateOf(states, asker.value), *asker.axes, may, space) || conflict;
  }
  for (size_t i = 0; i < expr.inputs.size(); ++i) {
    const Value& value = fusion_.value(expr.inputs[i]);
    plan.operands.push_back(
        value.is_scalar ? Sharding{} : stateFrom(value.tensor, map.inputs[i], space, plan.mesh));
  }
  plan.result = stateFrom(fusion_.tensor(expr.outputs[0]), map.outputs[0], space, plan.mesh);
  for (size_t s = 0; s < space.size(); ++s) {
    if (map.space[s].kind != IterKind::Reduction) continue;
    for (MeshAxis axis : space[s]) plan.result.partial.push_back({axis, combinationOf(expr)});
  }
  return plan;
}

double LocalPlanner::costOf(const Expression& expr, const LocalPlan& plan,
                            const States& states) const {
  double bytes = 0;
  auto add = [&](const TensorView& tensor, const Sharding& from, const Sharding& to) {
    ReshardPaths::Path path = paths_.find(tensor, from, to);
    bytes += path.possible ? path.bytes : 1e30;
  };
  for (size_t i = 0; i < expr.inputs.size(); ++i) {
    const std::optional<Sharding>& state = stateOf(states, expr.inputs[i]);
    if (state) add(fusion_.tensor(expr.inputs[i]), *state, plan.operands[i]);
  }
  const std::optional<Sharding>& wanted = stateOf(states, expr.outputs[0]);
  add(fusion_.tensor(expr.outputs[0]), plan.result, wanted ? *wanted : resolved(plan.result));
  return bytes;
}

LocalPlan LocalPlanner::plan(const Expression& expr, const States& states) const {
  if (meshOf(expr, states) < 0) return {};
  AxisMap map = axisMapOf(fusion_, expr);
  std::vector<Asker> askers = askersOf(expr, map, states);
  bool conflict = false;
  LocalPlan best = planFor(expr, map, states, askers, conflict);
  if (!conflict) return best;
  double best_cost = costOf(expr, best, states);
  for (size_t first = 1; first < askers.size(); ++first) {
    std::vector<Asker> order = askers;
    std::rotate(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(first),
                order.begin() + static_cast<std::ptrdiff_t>(first) + 1);
    LocalPlan other = planFor(expr, map, states, order, conflict);
    double cost = costOf(expr, other, states);
    if (cost < best_cost) {
      best = std::move(other);
      best_cost = cost;
    }
  }
  return best;
}

}  // namespace heddle
