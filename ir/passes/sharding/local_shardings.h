#pragma once

#include <optional>
#include <vector>

#include "ir/analysis/shardable_axes.h"
#include "ir/graph/fusion.h"
#include "ir/passes/sharding/reshard_path.h"
#include "ir/passes/sharding/user_sharded_axes.h"

namespace heddle {

// Describes how one expression runs without communication: the shardings that its operands need,
// and the sharding that its result then has. The result is partial if a reduced axis is split.
struct LocalShardings {
  MeshId mesh;                     // kNoMesh: no state is known, and the rest is empty
  std::vector<Sharding> operands;  // empty states for scalars
  Sharding result;
};

using States = IdVector<ValueId, std::optional<Sharding>>;  // nullopt: not known

// Chooses the LocalShardings of an expression. Each axis of its iteration space gets the mesh axes
// that an operand or the wanted result has there (ir/analysis/shardable_axes.h).
//
//  - Operands claim mesh axes in order of size, largest first; the result claims last. An operand
//    or result whose claim conflicts with an earlier one is resharded. A claim conflicts if the
//    space axis has other mesh axes already, or if another space axis uses the mesh axis.
//  - If any claim conflicts, the planner tries each claimant as the first one and keeps the choice
//    that moves the fewest bytes. Ties keep the default order.
//  - If the shardings are on several meshes, the planner tries each mesh, that of the result first.
//  - An axis that a slice shortens is not split.
//  - Axes that a reshape regroups are split only if their blocks are even. If the user asked for
//    the operand's axis to be sharded (ir/passes/sharding/user_sharded_axes.h), they must not be
//    known to be uneven; if the axis may be gathered (it is merged, or split with gather_uneven or
//    to a sharding that the user wrote), they must be even at the size defaults too. Otherwise, and
//    for claims of the result, blocks must be even for all sizes.
class LocalShardingPlanner {
 public:
  explicit LocalShardingPlanner(const Fusion& fusion)
      : fusion_(fusion), paths_(fusion), user_sharded_(userShardedAxes(fusion)) {}

  // Returns the choice for the known shardings of the operands and of the result.
  LocalShardings plan(const Expression& expr, const States& states) const;

  const ReshardPaths& paths() const { return paths_; }

  // Returns the axes of the value that the user asked to be sharded. Empty if the fusion has no
  // reshape.
  const std::vector<bool>& asked(ValueId value) const { return user_sharded_[value]; }

 private:
  // A value that claims mesh axes for the axes of the space.
  struct Asker {
    ValueId value;
    const std::vector<int>* axes;  // space axis of each axis of the value
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
