#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/base/size.h"
#include "ir/types/mesh.h"

// How two meshes of one fusion lie to each other, and the meshes over which data moves between
// them. All meshes have their sizes (ir/passes/concretize_meshes.h).
namespace heddle {

std::vector<int64_t> ranksOf(const DeviceMesh& mesh);  // row-major

bool sameAxes(const DeviceMesh& a, const DeviceMesh& b);     // names and sizes, whatever the ranks
bool sameDevices(const DeviceMesh& a, const DeviceMesh& b);  // same axes and ranks
bool isWithin(const DeviceMesh& inner, const DeviceMesh& outer);  // each rank of `inner`
bool isDisjoint(const DeviceMesh& a, const DeviceMesh& b);

int64_t devicesOf(const DeviceMesh& mesh, const std::vector<MeshAxis>& axes);  // their product

// The axes of the mesh with more than one device are all in the list.
bool coversMesh(const std::vector<MeshAxis>& list, const DeviceMesh& mesh);

// The first of the same axes and ranks, or kNoMesh.
MeshId findMesh(const Meshes& meshes, const DeviceMesh& mesh);

// A team with a root: the ranks of a mesh, or those along one of its axes.
struct RootedTeam {
  DeviceMesh mesh;             // named after the two meshes unless it is one of them
  std::vector<MeshAxis> axes;  // empty: all of the mesh
  int root = 0;                // within the team
};

// From a value that all of `from` hold to all of `to`: `to` itself where they share a rank, else
// the first rank of `from` and those of `to`.
RootedTeam broadcastTeam(const DeviceMesh& from, const DeviceMesh& to);

// Device i of `from` with device i of `to`, for disjoint meshes of one size.
RootedTeam pairTeam(const DeviceMesh& from, const DeviceMesh& to);

// The ranks of a mesh, in the order of blocks over the list of its axes, and behind them a rank
// that is not among them: the root. `from` and `to` give the name.
RootedTeam teamWithRoot(const DeviceMesh& mesh, const std::vector<MeshAxis>& list, int64_t root,
                        const DeviceMesh& from, const DeviceMesh& to);

// Blocks of an extent over the last `count` axes of the list are of one size and follow each other
// without gaps but at the end: so for one axis of more than one device, and where the extent
// divides evenly. Blocks within uneven blocks do not.
bool blocksAreFlat(const Size& extent, const DeviceMesh& mesh, const std::vector<MeshAxis>& list,
                   size_t count);

}  // namespace heddle
