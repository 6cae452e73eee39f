#include "ir/types/mesh_relations.h"

#include <algorithm>

#include "ir/base/check.h"
#include "ir/sizes/size_quotient.h"

namespace heddle {

std::vector<int64_t> ranksOf(const DeviceMesh& mesh) {
  std::vector<int64_t> ranks;
  for (int64_t i = 0; i < mesh.size(); ++i) ranks.push_back(mesh.rankAt(i));
  return ranks;
}

bool sameAxes(const DeviceMesh& a, const DeviceMesh& b) { return a.axes == b.axes; }

bool sameDevices(const DeviceMesh& a, const DeviceMesh& b) {
  return sameAxes(a, b) && ranksOf(a) == ranksOf(b);
}

bool isWithin(const DeviceMesh& inner, const DeviceMesh& outer) {
  const std::vector<int64_t> ranks = ranksOf(inner);
  return std::all_of(ranks.begin(), ranks.end(),
                     [&](int64_t rank) { return outer.positionOf(rank) >= 0; });
}

bool isDisjoint(const DeviceMesh& a, const DeviceMesh& b) {
  const std::vector<int64_t> ranks = ranksOf(a);
  return std::none_of(ranks.begin(), ranks.end(),
                      [&](int64_t rank) { return b.positionOf(rank) >= 0; });
}

int64_t devicesOf(const DeviceMesh& mesh, const std::vector<MeshAxis>& axes) {
  int64_t count = 1;
  for (MeshAxis axis : axes) count *= mesh.size(axis);
  return count;
}

bool coversMesh(const std::vector<MeshAxis>& list, const DeviceMesh& mesh) {
  return std::all_of(mesh.axes.begin(), mesh.axes.end(), [&](const DeviceMesh::Axis& axis) {
    return axis.size == 1 || std::find(list.begin(), list.end(), axis.axis) != list.end();
  });
}

MeshId findMesh(const Meshes& meshes, const DeviceMesh& mesh) {
  for (MeshId id : meshes.ids()) {
    if (sameDevices(meshes[id], mesh)) return id;
  }
  return kNoMesh;
}

RootedTeam broadcastTeam(const DeviceMesh& from, const DeviceMesh& to) {
  const std::vector<int64_t> targets = ranksOf(to);
  for (size_t i = 0; i < targets.size(); ++i) {
    if (from.positionOf(targets[i]) >= 0) return {to, {}, static_cast<int>(i)};
  }
  RootedTeam team;
  team.mesh.name = from.name + "_to_" + to.name;
  team.mesh.axes = {{MeshAxis::X, to.size() + 1}};
  team.mesh.ranks = {from.rankAt(0)};
  team.mesh.ranks.insert(team.mesh.ranks.end(), targets.begin(), targets.end());
  return team;
}

RootedTeam pairTeam(const DeviceMesh& from, const DeviceMesh& to) {
  HEDDLE_CHECK(from.size() == to.size() && isDisjoint(from, to),
               "{} and {} must be disjoint and of one size", from.str(), to.str());
  RootedTeam team;
  team.mesh.name = from.name + "_with_" + to.name;
  team.mesh.axes = {{MeshAxis::Y, 2}, {MeshAxis::X, from.size()}};
  team.mesh.ranks = ranksOf(from);
  const std::vector<int64_t> targets = ranksOf(to);
  team.mesh.ranks.insert(team.mesh.ranks.end(), targets.begin(), targets.end());
  team.axes = {MeshAxis::Y};
  return team;
}

RootedTeam teamWithRoot(const DeviceMesh& mesh, const std::vector<MeshAxis>& list, int64_t root,
                        const DeviceMesh& from, const DeviceMesh& to) {
  RootedTeam team;
  team.mesh.name = from.name + "_to_" + to.name;
  team.mesh.ranks = mesh.team(mesh.rankAt(0), list);
  team.root = static_cast<int>(team.mesh.ranks.size());
  team.mesh.ranks.push_back(root);
  team.mesh.axes = {{MeshAxis::X, team.root + 1}};
  return team;
}

bool blocksAreFlat(const Size& extent, const DeviceMesh& mesh, const std::vector<MeshAxis>& list,
                   size_t count) {
  const auto cuts = std::count_if(list.end() - static_cast<std::ptrdiff_t>(count), list.end(),
                                  [&](MeshAxis axis) { return mesh.size(axis) > 1; });
  return cuts < 2 || remainder(extent, devicesOf(mesh, list)).isConstant(0);
}

}  // namespace heddle
