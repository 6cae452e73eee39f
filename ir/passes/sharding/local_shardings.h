#pragma once

#include <optional>
#include <vector>

#include "ir/analysis/shardable_axes.h"
#include "ir/graph/fusion.h"
#include "ir/passes/sharding/reshard_path.h"
#include "ir/passes/sharding/user_sharded_axes.h"

namespace heddle {

// How one expression is computed with no communication: the states its operands must have and the
// state the result then is in, partial where a reduced axis is spread over devices.
struct LocalShardings {
  MeshId mesh;                     // kNoMesh: no state is known, and the rest is empty
  std::vector<Sharding> operands;  // empty states for scalars
  Sharding result;
};

using States = IdVector<ValueId, std::optional<Sharding>>;  // nullopt: not known

// Gives each axis of the expression's iteration space the mesh axes that an operand or the wanted
// result has there (ir/analysis/shardable_axes.h). They ask in turn, operands with more bytes first
// and the result last; who comes too late, because a space axis has others or a mesh axis is in
// use, is resharded. Where that happens, every asker is tried as the first one and the cheapest
// plan in bytes is taken, ties going to the order above. Of states over several meshes each mesh is
// tried, that of the result first. What a slice cuts is spread over nothing, nor is what a reshape
// regroups where blocks are known to be uneven, or are by the size defaults and the axis is merged,
// or split where it may be gathered. Where neither an operand that the user asked to be sharded
// (ir/passes/sharding/user_sharded_axes.h) nor what he wrote of the result wants it, blocks must be
// known to be even: an axis that may be uneven stays whole.
class LocalShardingPlanner {
 public:
  explicit LocalShardingPlanner(const Fusion& fusion)
      : fusion_(fusion), paths_(fusion), user_sharded_(userShardedAxes(fusion)) {}

  LocalShardings plan(const Expression& expr, const States& states) const;

  const ReshardPaths& paths() const { return paths_; }

  // That of a value; of a fusion with a reshape only.
  const std::vector<bool>& asked(ValueId value) const { return user_sharded_[value]; }

 private:
  // A value that wants the space spread its way.
  struct Asker {
    ValueId value;
    const std::vector<int>* axes;  // of the value in the space
    const Sharding* state;
  };
  static std::vector<MeshId> meshesOf(const std::vector<Asker>& askers,
                                      const std::optional<Sharding>& result);
  std::vector<Asker> askersOf(const Expression& expr, const AxisMap& map,
                              const States& states) const;
  LocalShardings planFor(const Expression& expr, const ShardableAxes& spread, MeshId mesh,
                         const std::vector<Asker>& askers, bool& conflict) const;
  double costOf(const Expression& expr, const LocalShardings& plan, const States& states) const;

  const Fusion& fusion_;
  ReshardPaths paths_;
  IdVector<ValueId, std::vector<bool>> user_sharded_;
};

}  // namespace heddle
