#include "ir/passes/sharding/user_sharded_axes.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "ir/analysis/kernel_rules.h"
#include "ir/analysis/shardable_axes.h"

namespace heddle {
namespace {

using UserShardedAxes = IdVector<ValueId, std::vector<bool>>;

std::vector<bool> writtenAxes(const TensorView& tensor) {
  std::vector<bool> axes(tensor.rank());
  for (size_t i = 0; i < axes.size(); ++i) axes[i] = tensor.sharding->isSharded(i);
  return axes;
}

std::vector<bool> followedAxes(const Fusion& fusion, const Expression& expr,
                               const UserShardedAxes& asked) {
  const ShardableAxes shardable = shardableAxesOf(fusion, expr);
  std::vector<bool> space(shardable.map.space.size());
  for (size_t i = 0; i < expr.inputs.size(); ++i) {
    const std::vector<bool>& operand = asked[expr.inputs[i]];
    for (size_t axis = 0; axis < shardable.map.inputs[i].size(); ++axis) {
      const int s = shardable.map.inputs[i][axis];
      if (s == AxisMap::kNone || !operand[axis]) continue;
      space[s] = shardable.may[s];
    }
  }
  std::vector<bool> result(fusion.tensor(expr.outputs[0]).rank());
  for (size_t axis = 0; axis < result.size(); ++axis) {
    const int s = shardable.map.outputs[0][axis];
    result[axis] = s != AxisMap::kNone && space[s];
  }
  return result;
}

// Divides the axes of all values into sets. The axes of a set must have the same sharding so that
// no data has to move.
class ConnectedAxes {
 public:
  explicit ConnectedAxes(const Fusion& fusion) : fusion_(fusion), first_(fusion.values().size()) {
    size_t count = 0;
    for (ValueId id : first_.ids()) {
      first_[id] = count;
      count += rankOf(id);
    }
    parents_.resize(count);
    std::iota(parents_.begin(), parents_.end(), size_t{0});
    is_sharded_.resize(count);
    for (ValueId id : first_.ids()) {
      for (size_t axis = 0; axis < rankOf(id); ++axis) {
        is_sharded_[first_[id] + axis] =
            hasSharding(id) && fusion.tensor(id).sharding->isSharded(axis);
      }
    }
    for (const Expression& expr : fusion.exprs()) {
      if (!isHostScalar(fusion, expr)) connect(expr);
    }
    for (size_t i = 0; i < fusion.outputs().size(); ++i) {
      if (const auto& reuse = fusion.reuses()[i]) connect(fusion.outputs()[i], reuse->input);
    }
  }

  UserShardedAxes shardedAxes() {
    UserShardedAxes result(first_.size());
    for (ValueId id : first_.ids()) {
      for (size_t axis = 0; axis < rankOf(id); ++axis) {
        const size_t at = first_[id] + axis;
        result[id].push_back(is_sharded_[hasSharding(id) ? at : setOf(at)]);
      }
    }
    return result;
  }

 private:
  size_t rankOf(ValueId id) const {
    return fusion_.value(id).is_scalar ? 0 : fusion_.tensor(id).rank();
  }
  bool hasSharding(ValueId id) const { return fusion_.tensor(id).sharding.has_value(); }

  size_t setOf(size_t axis) {
    while (parents_[axis] != axis) axis = parents_[axis] = parents_[parents_[axis]];
    return axis;
  }

  // Returns whether the axis can pass a sharding on to other values. It cannot if the value has a
  // sharding that does not split the axis.
  bool passesOn(ValueId id, size_t axis) const {
    return !hasSharding(id) || fusion_.tensor(id).sharding->isSharded(axis);
  }

  void connect(size_t a, size_t b) {
    a = setOf(a);
    b = setOf(b);
    parents_[b] = a;
    is_sharded_[a] = is_sharded_[a] || is_sharded_[b];
  }

  void connect(ValueId output, ValueId input) {
    for (size_t axis = 0; axis < rankOf(output); ++axis) {
      if (!passesOn(output, axis) || !passesOn(input, axis)) continue;
      connect(first_[output] + axis, first_[input] + axis);
    }
  }

  void connect(const Expression& expr) {
    const ShardableAxes shardable = shardableAxesOf(fusion_, expr);
    std::vector<std::optional<size_t>> connected(shardable.map.space.size());
    const auto add = [&](ValueId id, const std::vector<int>& map) {
      for (size_t axis = 0; axis < map.size(); ++axis) {
        const int s = map[axis];
        if (s == AxisMap::kNone || !shardable.may[s] || !passesOn(id, axis)) continue;
        if (!connected[s]) connected[s] = first_[id] + axis;
        connect(*connected[s], first_[id] + axis);
      }
    };
    for (size_t i = 0; i < expr.inputs.size(); ++i) add(expr.inputs[i], shardable.map.inputs[i]);
    for (size_t i = 0; i < expr.outputs.size(); ++i) add(expr.outputs[i], shardable.map.outputs[i]);
  }

  const Fusion& fusion_;
  IdVector<ValueId, size_t> first_;  // the number of the first axis of each value
  // Union-find, with one entry per number of an axis. The root of a set identifies the set.
  std::vector<size_t> parents_;
  // Whether the sharding of the value splits the axis. For a root: whether the set contains an axis
  // that is split.
  std::vector<bool> is_sharded_;
};

}  // namespace

UserShardedAxes axesThatMayBeSharded(const Fusion& fusion) {
  const auto hasSharding = [](const Value& value) { return value.tensor.sharding.has_value(); };
  if (std::none_of(fusion.values().begin(), fusion.values().end(), hasSharding)) {
    return UserShardedAxes(fusion.values().size());
  }
  return ConnectedAxes(fusion).shardedAxes();
}

UserShardedAxes userShardedAxes(const Fusion& fusion) {
  UserShardedAxes asked(fusion.values().size());
  const auto reshapes = [](const Expression& expr) { return expr.op->kind == OpKind::Reshape; };
  if (std::none_of(fusion.exprs().begin(), fusion.exprs().end(), reshapes)) return asked;
  for (ValueId id : asked.ids()) {
    const Value& value = fusion.value(id);
    asked[id].resize(value.is_scalar ? 0 : value.tensor.rank());
    if (value.user_sharding) asked[id] = writtenAxes(value.tensor);
  }
  for (const Expression& expr : fusion.exprs()) {
    const ValueId result = expr.outputs[0];
    if (isHostScalar(fusion, expr) || fusion.value(result).user_sharding) continue;
    asked[result] = followedAxes(fusion, expr, asked);
  }
  return asked;
}

}  // namespace heddle
