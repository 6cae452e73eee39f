#include "ir/passes/sharding/user_sharded_axes.h"

#include <algorithm>

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

}  // namespace

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
