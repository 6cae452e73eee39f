#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/base/size.h"
#include "ir/types/mesh.h"

// Functions that compare meshes of a fusion and compute the teams that move data between them. A
// team is the group of ranks that take part in one collective. The sizes of all mesh axes must be
// known (ir/passes/concretize_meshes.h).
namespace heddle {

std::vector<int64_t> ranksOf(const DeviceMesh& mesh);  // in row-major order

bool sameAxes(const DeviceMesh& a, const DeviceMesh& b);  // same axes and sizes; ranks may differ
bool sameDevices(const DeviceMesh& a, const DeviceMesh& b);  // same axes and ranks
bool isWithin(const DeviceMesh& inner,
              const DeviceMesh& outer);  // `outer` has all ranks of `inner`
bool isDisjoint(const DeviceMesh& a, const DeviceMesh& b);

int64_t devicesOf(const DeviceMesh& mesh,
                  const std::vector<MeshAxis>& axes);  // product of the sizes of `axes`

// Returns whether `list` contains all axes of the mesh with more than one device.
bool coversMesh(const std::vector<MeshAxis>& list, const DeviceMesh& mesh);

// Returns the id of the first mesh with the same axes and ranks, or kNoMesh if there is none.
MeshId findMesh(const Meshes& meshes, const DeviceMesh& mesh);

// A team in which one rank, the root, sends data to all other ranks or receives data from them. The
// team spans all ranks of `mesh`, or only those that DeviceMesh::team() of `mesh` over `axes`
// returns. In the second case, `mesh` has several such teams.
struct RootedTeam {
  DeviceMesh mesh;             // a mesh that the caller passed, or a new mesh
  std::vector<MeshAxis> axes;  // mesh axes that each team spans; empty: all
  int root = 0;                // index of the root in the team
};

// Returns the team that broadcasts a value to all ranks of `to`. Every rank of `from` holds the
// value. If the meshes share a rank, the team consists of the ranks of `to`, and the root is a
// shared rank. Otherwise the team consists of the first rank of `from`, which is the root, and the
// ranks of `to`.
RootedTeam broadcastTeam(const DeviceMesh& from, const DeviceMesh& to);

// Returns teams of two ranks each. Team i consists of device i of `from`, which is the root, and
// device i of `to`. The meshes must be disjoint and have the same number of devices.
RootedTeam pairTeam(const DeviceMesh& from, const DeviceMesh& to);

// Returns a team of the ranks of `mesh`, followed by the root, which must not be a rank of `mesh`.
// `list` contains the mesh axes over which an axis of a tensor is split, and must cover `mesh`
// (coversMesh()). The ranks of `mesh` are in the order of the blocks of this tensor axis. The name
// of the new mesh consists of the names of `from` and `to`.
RootedTeam teamWithRoot(const DeviceMesh& mesh, const std::vector<MeshAxis>& list, int64_t root,
                        const DeviceMesh& from, const DeviceMesh& to);

// An axis of extent `extent` is split over the mesh axes in `list`. The mesh axes before the last
// `count` ones split it into large blocks. The last `count` mesh axes split each large block into
// small blocks. Returns whether the small blocks are flat for all sizes. Small blocks are flat if,
// in each large block, a block that is shorter than those before it is followed only by empty
// blocks. The function returns true if at least one of these is true:
//  - At most one of the last `count` mesh axes has more than one device.
//  - The number of devices along all mesh axes in `list` divides the extent for all sizes.
// Otherwise a small block in the middle may be short. For example, two mesh axes of two devices
// split the extent 5 into blocks of 2, 1, 2 and 0 elements, which are not flat for `count` = 2.
bool blocksAreFlat(const Size& extent, const DeviceMesh& mesh, const std::vector<MeshAxis>& list,
                   size_t count);

}  // namespace heddle
