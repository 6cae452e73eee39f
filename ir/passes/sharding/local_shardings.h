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
  MeshId mesh = kNoMesh;           // kNoMesh: no sharding is known; the other fields are empty
  std::vector<Sharding> operands;  // Sharding() for scalars
  Sharding result;
};

// The sharding of each value; nullopt if it is not known yet.
using States = IdVector<ValueId, std::optional<Sharding>>;

// Chooses the LocalShardings of an expression. Operands and the wanted result claim mesh axes for
// the axes of the iteration space ("space axes", ir/analysis/axis_map.h): each one claims the mesh
// axes over which its own axes are split. ir/analysis/shardable_axes.h says which space axes may be
// split.
//
//  - Operands claim mesh axes in order of size, largest first; the result claims last. An operand
//    or result whose claim conflicts with an earlier one is resharded. A claim conflicts if the
//    space axis has other mesh axes already, or if another space axis uses the mesh axis.
//  - If any claim conflicts, the planner tries each claimant as the first one and keeps the choice
//    that moves the fewest bytes. Ties keep the default order.
//  - If the shardings are on several meshes, the planner tries each mesh, that of the result first.
//  - An axis that a slice shortens is not split.
//  - Axes that a reshape regroups are split only if their blocks are even. How much must be known
//    about the sizes depends on the claim:
//     - The result claims, or the user did not ask for the operand's axis to be sharded
//       (ir/passes/sharding/user_sharded_axes.h): blocks must be even for all sizes.
//     - The user asked for it: blocks must not be known to be uneven.
//     - The user asked for it, and the axis may be gathered instead: blocks must also be even at
//       the size defaults. An axis may be gathered if the reshape merges it, splits it with
//       gather_uneven, or splits it and the user wrote the sharding of the result.
class LocalShardingPlanner {
 public:
  explicit LocalShardingPlanner(const Fusion& fusion)
      : fusion_(fusion), paths_(fusion), user_sharded_(userShardedAxes(fusion)) {}

  // Returns the choice for the shardings in `states` of the operands and of the result.
  LocalShardings plan(const Expression& expr, const States& states) const;

  const ReshardPaths& paths() const { return paths_; }

  // Returns, for each axis of the value, whether the user asked for it to be sharded. Empty if the
  // fusion has no reshape.
  const std::vector<bool>& asked(ValueId value) const { return user_sharded_[value]; }

 private:
  // An operand or result that claims mesh axes.
  struct Asker {
    ValueId value;
    const std::vector<int>* axes;  // the space axis of each logical axis of the value
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
