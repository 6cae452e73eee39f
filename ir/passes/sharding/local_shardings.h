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

// The sharding of each value. nullopt for scalars, and for tensors whose sharding is not known yet.
using States = IdVector<ValueId, std::optional<Sharding>>;

// Chooses the LocalShardings of an expression. A choice assigns mesh axes to axes of the iteration
// space ("space axes", ir/analysis/axis_map.h). If mesh axes split a logical axis of an operand,
// the operand claims these mesh axes for the space axis that corresponds to the logical axis. The
// result claims mesh axes in the same way for its wanted sharding. ir/analysis/shardable_axes.h
// determines which space axes may be split.
//
//  - Operands claim mesh axes in order of their unsharded bytes, largest first; the result claims
//    last. If a claim conflicts with an earlier claim, the operand or result that made the later
//    claim is resharded. A claim conflicts if the space axis already has different mesh axes, or if
//    a different space axis already uses the mesh axis.
//  - If any claim conflicts, the planner tries each operand and the result as the first claimant.
//    It keeps the choice that moves the fewest bytes. Ties keep the default order.
//  - If the shardings are on several meshes, the planner tries each mesh. It tries the mesh of the
//    result's wanted sharding first. A value on a second mesh can claim mesh axes only if both
//    meshes have the same axes.
//  - An axis that a slice shortens is not split.
//  - An axis that a reshape splits or merges can stay sharded only if all its blocks are equal
//    ("even"). If symbolic sizes leave this open, these rules apply:
//    - A claim of the result is rejected. A claim of an operand is rejected too if the user did not
//      ask for this axis to be sharded (ir/passes/sharding/user_sharded_axes.h).
//    - A claim of an operand is granted if the user asked for this axis to be sharded. Exception:
//      the blocks are uneven with the default sizes of the fusion (Fusion::size_defaults), and
//      heddle may gather the axis. To gather an axis means to give every device all elements of the
//      axis.
//    - heddle may always gather an axis that the reshape merges. It may gather an axis that the
//      reshape splits if the reshape has gather_uneven=true (FusionBuilder::reshape()), or if the
//      user wrote the sharding of the result.
class LocalShardingPlanner {
 public:
  explicit LocalShardingPlanner(const Fusion& fusion)
      : fusion_(fusion), paths_(fusion), user_sharded_(userShardedAxes(fusion)) {}

  // Returns the LocalShardings for this expression. `states` contains the shardings of the
  // operands, and the wanted sharding of the result.
  LocalShardings plan(const Expression& expr, const States& states) const;

  const ReshardPaths& paths() const { return paths_; }

  // Returns, for each axis of the value, whether the user asked for it to be sharded. The list is
  // empty if the fusion has no reshape.
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
  bool isLarger(const TensorView& a, const TensorView& b) const;
  std::vector<Asker> askersOf(const Expression& expr, const AxisMap& map,
                              const States& states) const;
  void sortBySize(const Expression& expr, std::vector<Asker>& askers) const;
  LocalShardings planFor(const Expression& expr, const ShardableAxes& shardable, MeshId mesh,
                         const std::vector<Asker>& askers, bool& conflict) const;
  double costOf(const Expression& expr, const LocalShardings& plan, const States& states) const;

  const Fusion& fusion_;
  ReshardPaths paths_;
  IdVector<ValueId, std::vector<bool>> user_sharded_;
};

}  // namespace heddle
