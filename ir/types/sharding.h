#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/base/size.h"
#include "ir/types/mesh.h"

namespace heddle {

enum class ReduceOp : uint8_t { Sum, Prod, Min, Max, Avg };  // Avg: floats only
std::string_view name(ReduceOp op);
std::optional<ReduceOp> reduceOpFromName(std::string_view text);

// How one tensor is spread over a mesh. A mesh axis appears at most once in the whole state; a mesh
// axis that does not appear replicates.
struct Sharding {
  struct Partial {
    MeshAxis axis;
    ReduceOp op;  // the global value is the op over the axis of the local values
    bool operator==(const Partial&) const = default;
  };
  struct StreamSplit {
    int64_t axis;  // logical axis
    int64_t chunks;
    bool operator==(const StreamSplit&) const = default;
  };

  MeshId mesh{0};
  std::vector<std::vector<MeshAxis>> axes;  // per logical axis, outermost mesh axis first
  std::vector<Partial> partial;
  std::optional<StreamSplit> stream;

  bool operator==(const Sharding&) const = default;

  bool isReplicated() const;  // nothing sharded, partial or stream split
  bool isPartial() const { return !partial.empty(); }
  bool isSharded(size_t logical_axis) const;
  // Where `axis` is used: the logical axis, or -1.
  int logicalAxisOf(MeshAxis axis) const;

  // `shard(@m, 1: x)`, `shard(@m, 0: [y, x])`, `partial(sum: x)`, `shard(@m)` when replicated,
  // `stream(0: 4)`; several joined by a space, the mesh named once by shard().
  std::string str(const DeviceMesh& mesh) const;
};

// One block of an axis of extent n that is split over an ordered list of mesh axes. Each mesh axis
// in turn cuts the block it was given into blocks of ceil(extent / devices), so gathering an inner
// axis yields exactly the block of the outer one.
struct Block {
  int64_t begin = 0;  // global index of the first valid element (<= n)
  int64_t valid = 0;  // elements that exist; 0 for an empty rank
  int64_t alloc = 0;  // elements every rank allocates: the ceil size
};
Block blockOf(int64_t n, const DeviceMesh& mesh, const std::vector<MeshAxis>& axes, int64_t rank);

// The symbolic alloc size of the same split: equal on all ranks.
Size allocBlock(const Size& n, const DeviceMesh& mesh, const std::vector<MeshAxis>& axes);

}  // namespace heddle
