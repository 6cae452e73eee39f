#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/base/id.h"

namespace heddle {

// The axes of a device mesh, named as nvFuser names them: DIDx varies fastest over the devices.
enum class MeshAxis : uint8_t { X, Y, Z };

std::string_view name(MeshAxis axis);  // "x", "y", "z"

// A grid of devices (ranks). `mesh @m = [y=2, x=4]` has 8 devices; the last axis listed is the
// innermost, so the axes listed are [x], [y, x] or [z, y, x]. Device (iy, ix) is rank
// devices[iy * 4 + ix].
struct DeviceMesh {
  struct Axis {
    MeshAxis axis;
    int64_t size;  // kFromJob until concretizeMeshes() gives it the size of the job
    bool operator==(const Axis&) const = default;
  };
  static constexpr int64_t kFromJob = -1;

  std::string name;            // without the '@'
  std::vector<Axis> axes;      // outermost first
  std::vector<int64_t> ranks;  // row-major; empty means 0, 1, 2, ...

  bool operator==(const DeviceMesh&) const = default;

  bool has(MeshAxis axis) const;
  int64_t size(MeshAxis axis) const;       // UserError when the mesh has no such axis
  int64_t size() const;                    // devices in the mesh
  bool sizeIsFromJob() const;              // some axis still is kFromJob
  int64_t rankAt(int64_t position) const;  // rank of the row-major position

  // Row-major position of `rank`, or -1 when the mesh does not hold it.
  int64_t positionOf(int64_t rank) const;

  // Coordinate of `rank` on `axis`; the rank must be in the mesh.
  int64_t coordinate(int64_t rank, MeshAxis axis) const;

  // The ranks that share every coordinate with `rank` except those on `team_axes`, ordered
  // row-major by `team_axes` as listed (first = outermost). This is the team of a collective.
  std::vector<int64_t> team(int64_t rank, const std::vector<MeshAxis>& team_axes) const;

  std::string str() const;  // `@m = [y=2, x=4]`, `@m = [x=ranks]`, `@m = [x=2] ranks=[1, 3]`
};

using MeshId = Id<struct MeshTag>;  // index into the meshes of a Fusion or Program
inline constexpr MeshId kNoMesh;
using Meshes = IdVector<MeshId, DeviceMesh>;

// The most devices a mesh may have: transports number ranks in 32 bits.
inline constexpr int64_t kMaxDevices = int64_t{1} << 31;

// Product of the axes whose size is known; nullopt when it is above kMaxDevices.
std::optional<int64_t> knownDevices(const DeviceMesh& mesh);

// Gives every kFromJob axis its size: job_size / product of the other axes. At most one axis may
// be kFromJob. UserError when it does not divide, or when the mesh needs more ranks than the job
// has ("mesh @m needs 4 ranks, the job has 2").
void concretizeMesh(DeviceMesh& mesh, int64_t job_size);

}  // namespace heddle
