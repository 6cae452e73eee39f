#include "ir/passes/sharding/local_shardings.h"

#include <algorithm>

#include "ir/base/error.h"
#include "ir/passes/sharding/reshape_sharding.h"
#include "ir/sizes/size_quotient.h"
#include "ir/sizes/size_reads.h"
#include "ir/types/mesh_relations.h"

namespace heddle {
namespace {

using SpaceAxes = std::vector<std::vector<MeshAxis>>;

const std::optional<Sharding>& stateOf(const States& states, ValueId id) { return states[id]; }

// Returns false if the blocks of a regrouped axis are known to be uneven in operand or result. If
// the axis can be gathered instead, the function also returns false if the blocks are uneven with
// the default sizes of the fusion (Fusion::size_defaults).
bool mayBeEven(const ShardableAxes::Regrouped& axis, int64_t devices, bool can_gather,
               const ReshardPaths& paths) {
  const auto divides = [&](const Size& extent) {
    const Size left = remainder(extent, devices);
    if (left.isConstant()) return left.isConstant(0);
    const std::optional<int64_t> usual = can_gather ? paths.byDefaults(extent) : std::nullopt;
    if (!usual) return true;
    SizeReads::note(Size::mod(extent, Size(devices)), *usual % devices);
    return *usual % devices == 0;
  };
  return divides(axis.from) && divides(axis.to);
}

// Returns whether heddle may gather an axis that the reshape splits unevenly. The user allows it by
// gather_uneven or by writing a sharding for the result. Otherwise checkReshapeSharding() reports
// an error for such an axis.
bool maySplitGathered(const Fusion& fusion, const Expression& expr) {
  return fusion.value(expr.outputs[0]).user_sharding || gathersUneven(expr);
}

// The mesh axes that have been granted to each axis of the iteration space. The first value that
// claims a mesh axis gets it.
class SpaceGrants {
 public:
  SpaceGrants(const ShardableAxes& shardable, const DeviceMesh& mesh, const ReshardPaths& paths,
              bool splits_gathered)
      : shardable_(shardable),
        mesh_(mesh),
        paths_(paths),
        splits_gathered_(splits_gathered),
        space_(shardable.map.space.size()) {}

  // Grants the claims of one value if the mesh axes are still free. Returns false if a claim
  // conflicts with an earlier one. Ignores claims that can never be granted. In such a claim, the
  // axis cannot be split, or a reshape splits or merges the axis and the blocks may be uneven.
  // `asked` says which axes of the value the user asked to be sharded.
  bool grant(const Sharding& state, const std::vector<int>& axes, const std::vector<bool>& asked) {
    bool all = true;
    for (size_t axis = 0; axis < axes.size(); ++axis) {
      const std::vector<MeshAxis>& list = state.axes[axis];
      if (list.empty() || axes[axis] == AxisMap::kNone) continue;
      const size_t s = axes[axis];
      if (!shardable_.may[s] || space_[s] == list) continue;
      if (!fits(s, list, axis < asked.size() && asked[axis])) continue;
      const bool free =
          space_[s].empty() &&
          std::none_of(list.begin(), list.end(), [&](MeshAxis each) { return taken(each); });
      if (free) space_[s] = list;
      all = all && free;
    }
    return all;
  }

  const SpaceAxes& space() const { return space_; }

 private:
  bool fits(size_t s, const std::vector<MeshAxis>& list, bool asked) const {
    const ShardableAxes::Regrouped* regrouped = shardable_.regroupedAt(s);
    if (regrouped == nullptr) return true;
    const int64_t devices = devicesOf(mesh_, list);
    if (!asked) return regrouped->isEven(devices);
    return mayBeEven(*regrouped, devices, !regrouped->splits || splits_gathered_, paths_);
  }

  bool taken(MeshAxis axis) const {
    return std::any_of(space_.begin(), space_.end(), [&](const std::vector<MeshAxis>& list) {
      return std::find(list.begin(), list.end(), axis) != list.end();
    });
  }

  const ShardableAxes& shardable_;
  const DeviceMesh& mesh_;
  const ReshardPaths& paths_;
  const bool splits_gathered_;
  SpaceAxes space_;
};

Sharding stateFrom(const TensorView& tensor, const std::vector<int>& axes, const SpaceAxes& space,
                   MeshId mesh) {
  Sharding state = replicated(mesh, tensor.rank());
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    if (axes[axis] == AxisMap::kNone || tensor.domain[axis].kind == IterKind::Broadcast) continue;
    state.axes[axis] = space[axes[axis]];
  }
  return state;
}

ReduceOp combinationOf(const Expression& expr) {
  return expr.op->kind == OpKind::Reduction ? expr.op->reduce_op.value() : ReduceOp::Sum;
}

}  // namespace

// Returns each mesh once: first the mesh of the result, if the result has a sharding, then the
// meshes of the askers in the order of `askers`.
std::vector<MeshId> LocalShardingPlanner::meshesOf(const std::vector<Asker>& askers,
                                                   const std::optional<Sharding>& result) {
  std::vector<MeshId> meshes;
  const auto add = [&](MeshId mesh) {
    if (std::find(meshes.begin(), meshes.end(), mesh) == meshes.end()) meshes.push_back(mesh);
  };
  if (result) add(result->mesh);
  for (const Asker& asker : askers) add(asker.state->mesh);
  return meshes;
}

// Returns whether tensor `a` has more bytes than `b`. If their extents are equal, only the dtypes
// are compared, so the result does not depend on the sizes of a run.
bool LocalShardingPlanner::isLarger(const TensorView& a, const TensorView& b) const {
  if (a.sizes() == b.sizes()) return sizeOf(a.dtype) > sizeOf(b.dtype);
  for (const TensorView* tensor : {&a, &b}) paths_.noteRead(*tensor);
  return paths_.nonemptyBytes(a) > paths_.nonemptyBytes(b);
}

std::vector<LocalShardingPlanner::Asker> LocalShardingPlanner::askersOf(
    const Expression& expr, const AxisMap& map, const States& states) const {
  std::vector<Asker> askers;
  auto add = [&](ValueId id, const std::vector<int>& axes) {
    if (stateOf(states, id)) askers.push_back({id, &axes, &*stateOf(states, id)});
  };
  for (size_t i = 0; i < expr.inputs.size(); ++i) add(expr.inputs[i], map.inputs[i]);
  add(expr.outputs[0], map.outputs[0]);
  return askers;
}

// Sorts the operands by their bytes, largest first. The result stays last.
void LocalShardingPlanner::sortBySize(const Expression& expr, std::vector<Asker>& askers) const {
  const auto is_result = [&](const Asker& asker) { return asker.value == expr.outputs[0]; };
  std::stable_sort(askers.begin(), std::find_if(askers.begin(), askers.end(), is_result),
                   [&](const Asker& a, const Asker& b) {
                     return isLarger(fusion_.tensor(a.value), fusion_.tensor(b.value));
                   });
}

LocalShardings LocalShardingPlanner::planFor(const Expression& expr, const ShardableAxes& shardable,
                                             MeshId mesh, const std::vector<Asker>& askers,
                                             bool& conflict) const {
  LocalShardings plan;
  plan.mesh = mesh;
  const DeviceMesh& devices = fusion_.meshes.at(mesh);
  static const std::vector<bool> kNothing;
  SpaceGrants grants(shardable, devices, paths_, maySplitGathered(fusion_, expr));
  conflict = false;
  for (const Asker& asker : askers) {
    const bool understood =
        asker.state->mesh == mesh || sameAxes(fusion_.meshes.at(asker.state->mesh), devices);
    const std::vector<bool>& wanted =
        asker.value == expr.outputs[0] ? kNothing : asked(asker.value);
    conflict = !understood || !grants.grant(*asker.state, *asker.axes, wanted) || conflict;
  }
  const AxisMap& map = shardable.map;
  for (size_t i = 0; i < expr.inputs.size(); ++i) {
    const Value& value = fusion_.value(expr.inputs[i]);
    plan.operands.push_back(value.is_scalar
                                ? Sharding{}
                                : stateFrom(value.tensor, map.inputs[i], grants.space(), mesh));
  }
  plan.result = stateFrom(fusion_.tensor(expr.outputs[0]), map.outputs[0], grants.space(), mesh);
  for (size_t s = 0; s < map.space.size(); ++s) {
    if (map.space[s].kind != IterKind::Reduction) continue;
    for (MeshAxis axis : grants.space()[s]) {
      plan.result.partial.push_back({axis, combinationOf(expr)});
    }
  }
  return plan;
}

double LocalShardingPlanner::costOf(const Expression& expr, const LocalShardings& plan,
                                    const States& states) const {
  double bytes = 0;
  auto add = [&](const TensorView& tensor, const Sharding& from, const Sharding& to) {
    ReshardPaths::Path path = paths_.find(tensor, from, to);
    if (!path.states.empty()) paths_.noteRead(tensor);
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

LocalShardings LocalShardingPlanner::plan(const Expression& expr, const States& states) const {
  const ShardableAxes shardable = shardableAxesOf(fusion_, expr);
  std::vector<Asker> askers = askersOf(expr, shardable.map, states);
  if (askers.empty()) return {};
  std::vector<MeshId> meshes = meshesOf(askers, stateOf(states, expr.outputs[0]));
  bool conflict = false;
  LocalShardings best = planFor(expr, shardable, meshes.front(), askers, conflict);
  // Without a conflict, the order of the claims has no effect. The planner then compares no bytes,
  // so that other sizes need no new program.
  if (!conflict && meshes.size() == 1) return best;
  sortBySize(expr, askers);
  meshes = meshesOf(askers, stateOf(states, expr.outputs[0]));
  best = planFor(expr, shardable, meshes.front(), askers, conflict);
  double best_cost = costOf(expr, best, states);
  for (MeshId mesh : meshes) {
    for (size_t first = 0; first < askers.size(); ++first) {
      std::vector<Asker> order = askers;
      std::rotate(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(first),
                  order.begin() + static_cast<std::ptrdiff_t>(first) + 1);
      LocalShardings other = planFor(expr, shardable, mesh, order, conflict);
      const double cost = costOf(expr, other, states);
      if (cost < best_cost) {
        best = std::move(other);
        best_cost = cost;
      }
    }
  }
  return best;
}

}  // namespace heddle
