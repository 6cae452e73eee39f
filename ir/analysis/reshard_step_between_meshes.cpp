#include "ir/analysis/reshard_step_between_meshes.h"

#include <algorithm>

#include "ir/types/mesh_relations.h"

namespace heddle {
namespace {

// Returns whether samePlacement() (ir/analysis/reshard_step.h) would be true if both shardings were
// on one mesh.
bool samePlacementOnOneMesh(Sharding from, const Sharding& to) {
  from.mesh = to.mesh;
  return samePlacement(from, to);
}

ReshardStep rooted(ReshardStep::Kind kind, RootedTeam team, int64_t axis = -1) {
  ReshardStep step;
  step.kind = kind;
  step.axis = axis;
  step.team = std::move(team.axes);
  step.mesh = std::move(team.mesh);
  step.root = team.root;
  return step;
}

ReshardStep apart(ReshardStep::Kind kind, RootedTeam team, size_t axis) {
  ReshardStep step = rooted(kind, std::move(team), static_cast<int64_t>(axis));
  step.root_apart = true;
  return step;
}

// Returns the sharded logical axis if there is exactly one, if it is sharded over the full mesh,
// and if its blocks are flat (blocksAreFlat() in ir/types/mesh_relations.h). Otherwise returns
// nullopt.
std::optional<size_t> axisOverAll(const Sharding& state, const TensorView& tensor,
                                  const DeviceMesh& mesh) {
  std::optional<size_t> found;
  for (size_t axis = 0; axis < tensor.rank(); ++axis) {
    const std::vector<MeshAxis>& list = state.axes[axis];
    if (list.empty()) continue;
    const bool flat = blocksAreFlat(tensor.domain[axis].extent, mesh, list, list.size());
    if (found || !flat || !coversMesh(list, mesh)) return std::nullopt;
    found = axis;
  }
  return found;
}

ReshardStep transferStep(const Sharding& from, const Sharding& to, const DeviceMesh& source,
                         const DeviceMesh& target) {
  const bool alike = sameAxes(source, target) && samePlacementOnOneMesh(from, to);
  if (!alike || !isDisjoint(source, target)) return compoundStep();
  return rooted(ReshardStep::Kind::Transfer, pairTeam(source, target));
}

// Returns the index of `rank` in a team that contains all ranks of the mesh. The ranks of the team
// are in row-major order over the mesh axes in `list`.
int positionInTeam(const DeviceMesh& mesh, const std::vector<MeshAxis>& list, int64_t rank) {
  const std::vector<int64_t> team = mesh.team(rank, list);
  return static_cast<int>(std::find(team.begin(), team.end(), rank) - team.begin());
}

// Returns a step ScatterFrom. The root is the first device of the target mesh that is also in the
// source mesh. If there is no shared device, the root is the first device of the source mesh.
ReshardStep scatterStep(const Sharding& to, size_t axis, const DeviceMesh& source,
                        const DeviceMesh& target) {
  const std::vector<int64_t> ranks = ranksOf(target);
  const auto has = [&](int64_t rank) { return source.positionOf(rank) >= 0; };
  const auto found = std::find_if(ranks.begin(), ranks.end(), has);
  const std::vector<MeshAxis>& list = to.axes[axis];
  if (found == ranks.end()) {
    return apart(ReshardStep::Kind::ScatterFrom,
                 teamWithRoot(target, list, source.rankAt(0), source, target), axis);
  }
  return rooted(ReshardStep::Kind::ScatterFrom,
                {target, list, positionInTeam(target, list, *found)}, static_cast<int64_t>(axis));
}

}  // namespace

ReshardStep compoundStep() { return {ReshardStep::Kind::Compound, -1, {}, {}}; }

ReshardStep stepBetweenMeshes(const Sharding& from, const Sharding& to, const TensorView& tensor,
                              const Meshes& meshes) {
  const DeviceMesh& source = meshes.at(from.mesh);
  const DeviceMesh& target = meshes.at(to.mesh);
  const bool views = (from.isReplicated() && !to.isPartial() && isWithin(target, source)) ||
                     (sameDevices(source, target) && samePlacementOnOneMesh(from, to));
  if (views) return {ReshardStep::Kind::Slice, -1, {}, {}};
  ReshardStep pairs = transferStep(from, to, source, target);
  if (pairs.kind == ReshardStep::Kind::Transfer || from.isPartial() || to.isPartial()) return pairs;
  if (from.isReplicated()) {
    if (to.isReplicated()) {
      return rooted(ReshardStep::Kind::Broadcast, broadcastTeam(source, target));
    }
    const std::optional<size_t> axis = axisOverAll(to, tensor, target);
    return axis ? scatterStep(to, *axis, source, target) : compoundStep();
  }
  const std::optional<size_t> axis = axisOverAll(from, tensor, source);
  if (!to.isReplicated() || target.size() != 1 || !axis) return compoundStep();
  const std::vector<MeshAxis>& list = from.axes[*axis];
  if (!isWithin(target, source)) {
    return apart(ReshardStep::Kind::GatherTo,
                 teamWithRoot(source, list, target.rankAt(0), source, target), *axis);
  }
  return rooted(ReshardStep::Kind::GatherTo,
                {source, list, positionInTeam(source, list, target.rankAt(0))},
                static_cast<int64_t>(*axis));
}

}  // namespace heddle
