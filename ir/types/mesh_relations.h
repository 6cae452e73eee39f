#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/base/size.h"
#include "ir/types/mesh.h"

// Compares two meshes of one fusion, and computes the teams that move data between them. All meshes
// must have their sizes (ir/passes/concretize_meshes.h).
namespace heddle {

std::vector<int64_t> ranksOf(const DeviceMesh& mesh);  // in row-major order

bool sameAxes(const DeviceMesh& a, const DeviceMesh& b);     // names and sizes; ranks may differ
bool sameDevices(const DeviceMesh& a, const DeviceMesh& b);  // same axes and ranks
bool isWithin(const DeviceMesh& inner,
              const DeviceMesh& outer);  // `outer` has all ranks of `inner`
bool isDisjoint(const DeviceMesh& a, const DeviceMesh& b);

int64_t devicesOf(const DeviceMesh& mesh,
                  const std::vector<MeshAxis>& axes);  // product of their sizes

// Returns whether the list has all axes of the mesh that have more than one device.
bool coversMesh(const std::vector<MeshAxis>& list, const DeviceMesh& mesh);

// Returns the index of the first mesh with the same axes and ranks; -1: there is none.
MeshId findMesh(const Meshes& meshes, const DeviceMesh& mesh);

// A team with a root: the ranks of a mesh, or those along one of its axes.
struct RootedTeam {
  DeviceMesh mesh;             // has the names of both meshes, unless it is one of them
  std::vector<MeshAxis> axes;  // empty: all axes of the mesh
  int root = 0;                // position in the team
};

// Returns the team that broadcasts a value, which every rank of `from` holds, to all ranks of `to`.
// It is `to` itself if the meshes share a rank, else the first rank of `from` and the ranks of
// `to`.
RootedTeam broadcastTeam(const DeviceMesh& from, const DeviceMesh& to);

// Returns teams of two: device i of `from` with device i of `to`. The meshes must be disjoint and
// have the same size.
RootedTeam pairTeam(const DeviceMesh& from, const DeviceMesh& to);

// Returns a team of the ranks of a mesh, in the order of blocks over the list of its axes, followed
// by the root, which is not one of them. The team is named after `from` and `to`.
RootedTeam teamWithRoot(const DeviceMesh& mesh, const std::vector<MeshAxis>& list, int64_t root,
                        const DeviceMesh& from, const DeviceMesh& to);

// Returns whether the blocks of an extent over the last `count` axes of the list have the same size
// and follow each other without gaps, except at the end. This holds if at most one of these axes
// has more than one device, or if the extent divides evenly. Blocks within uneven blocks have gaps.
bool blocksAreFlat(const Size& extent, const DeviceMesh& mesh, const std::vector<MeshAxis>& list,
                   size_t count);

}  // namespace heddle
