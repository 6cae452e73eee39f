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

// Returns the id of the first mesh with the same axes and ranks, or kNoMesh if there is none.
MeshId findMesh(const Meshes& meshes, const DeviceMesh& mesh);

// A team with a root. The team consists of all ranks of a mesh, or of the ranks along some of its
// axes.
struct RootedTeam {
  DeviceMesh mesh;             // one of the two meshes, or a new one with both names
  std::vector<MeshAxis> axes;  // empty: all axes of the mesh
  int root = 0;                // position of the root in the team
};

// Returns the team that broadcasts a value to all ranks of `to`. Every rank of `from` holds the
// value. If the meshes share a rank, the team is `to` itself. Otherwise it consists of the first
// rank of `from` and the ranks of `to`.
RootedTeam broadcastTeam(const DeviceMesh& from, const DeviceMesh& to);

// Returns a mesh with teams of two ranks: device i of `from` and device i of `to` form one team.
// The meshes must be disjoint and have the same size.
RootedTeam pairTeam(const DeviceMesh& from, const DeviceMesh& to);

// Returns a team of the ranks of `mesh`, followed by the root, which must not be a rank of `mesh`.
// The ranks of `mesh` are in the order of their blocks when an axis is split over the mesh axes
// `list`. The name of the team is composed of the names of `from` and `to`.
RootedTeam teamWithRoot(const DeviceMesh& mesh, const std::vector<MeshAxis>& list, int64_t root,
                        const DeviceMesh& from, const DeviceMesh& to);

// Takes an extent that is split over the mesh axes in `list`, and returns whether its blocks over
// the last `count` of these axes are flat. Flat blocks have the same size and follow each other
// without gaps, except that the last ones may be short or empty. Blocks are flat if at most one of
// the axes has more than one device, or if the extent divides evenly. If uneven blocks are split
// again, gaps occur.
bool blocksAreFlat(const Size& extent, const DeviceMesh& mesh, const std::vector<MeshAxis>& list,
                   size_t count);

}  // namespace heddle
