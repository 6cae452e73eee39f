#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/base/id.h"

namespace heddle {

// The axes of a device mesh. X is the innermost axis: neighbouring devices of a mesh differ in X.
enum class MeshAxis : uint8_t { X, Y, Z };

std::string_view name(MeshAxis axis);  // "x", "y", "z"

// A grid of devices. Each device is one rank of the job. A mesh has the axes [x], [y, x] or
// [z, y, x]; the last axis is the innermost. For example, `mesh @m = [y=2, x=4]` has 8 devices.
// Device (iy, ix) of the example has the row-major position iy * 4 + ix. rankAt() returns the rank
// at a position.
struct DeviceMesh {
  struct Axis {
    MeshAxis axis;
    int64_t size;  // kFromJob: concretizeMesh() computes it from the size of the job
    bool operator==(const Axis&) const = default;
  };
  static constexpr int64_t kFromJob = -1;

  std::string name;            // without the '@'
  std::vector<Axis> axes;      // outermost first
  std::vector<int64_t> ranks;  // rank of each device, row-major; empty means 0, 1, 2, ...

  bool operator==(const DeviceMesh&) const = default;

  bool has(MeshAxis axis) const;
  int64_t size(MeshAxis axis) const;       // UserError if the mesh lacks the axis
  int64_t size() const;                    // number of devices; requires !sizeIsFromJob()
  bool sizeIsFromJob() const;              // whether any axis has the size kFromJob
  int64_t rankAt(int64_t position) const;  // the rank at a row-major position

  // Returns the row-major position of `rank`, or -1 if the rank is not in the mesh.
  int64_t positionOf(int64_t rank) const;

  // Returns the coordinate of `rank` on `axis`. The rank must be in the mesh.
  int64_t coordinate(int64_t rank, MeshAxis axis) const;

  // Returns the team of `rank` in a collective over `team_axes`. A team is the group of ranks that
  // take part in one collective. The team of `rank` consists of all ranks that have the same
  // coordinates as `rank` on the other axes of the mesh. The ranks are in row-major order over
  // `team_axes`; the first axis in this list is the outermost.
  std::vector<int64_t> team(int64_t rank, const std::vector<MeshAxis>& team_axes) const;

  std::string str() const;  // `@m = [y=2, x=4]`, `@m = [x=ranks]`, `@m = [x=2] ranks=[1, 3]`
};

using MeshId = Id<struct MeshTag>;  // index into the meshes of a Fusion or Program
inline constexpr MeshId kNoMesh;
using Meshes = IdVector<MeshId, DeviceMesh>;

// The largest number of devices of a mesh. The limit exists because the communication libraries
// store a rank in 32 bits.
inline constexpr int64_t kMaxDevices = int64_t{1} << 31;

// Returns the product of the axis sizes that are not kFromJob, or nullopt if it exceeds
// kMaxDevices.
std::optional<int64_t> knownDevices(const DeviceMesh& mesh);

// Sets the size of the kFromJob axis, if there is one, to job_size / product of the other axes.
// Throws UserError in these cases:
//  - More than one axis is kFromJob.
//  - There is a kFromJob axis, and the product of the other axes does not divide job_size.
//  - The mesh has more than kMaxDevices devices, needs more ranks than the job has, or lists a rank
//    that the job does not have.
void concretizeMesh(DeviceMesh& mesh, int64_t job_size);

}  // namespace heddle
