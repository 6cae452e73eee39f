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

// Describes how one tensor is split over the devices of a mesh. A mesh axis appears at most once in
// a sharding. Devices along a mesh axis that does not appear hold the same data.
struct Sharding {
  // Each device along `axis` holds a partial value. The reduction `op` of these is the value.
  struct Partial {
    MeshAxis axis;
    ReduceOp op;
    bool operator==(const Partial&) const = default;
  };
  // A request to compute the tensor in chunks along one logical axis.
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

  bool isReplicated() const;  // neither sharded, partial nor stream split
  bool isPartial() const { return !partial.empty(); }
  bool isSharded(size_t logical_axis) const;
  // Returns the logical axis that `axis` shards, or -1.
  int logicalAxisOf(MeshAxis axis) const;

  // Returns the text form: `shard(@m, 1: x)`, `shard(@m, 0: [y, x])`, or `shard(@m)` if no axis is
  // sharded. ` partial(sum: x)` and ` stream(0: 4)` follow if the tensor is partial or stream
  // split.
  std::string str(const DeviceMesh& mesh) const;
};

// One rank's block of an axis of extent n that is split over an ordered list of mesh axes. The
// first mesh axis splits the extent into blocks of ceil(n / devices) elements. Each further mesh
// axis splits the blocks of the mesh axis before it in the same way. An allgather over the
// innermost mesh axis therefore yields exactly the block of the next outer one.
struct Block {
  int64_t begin = 0;  // global index of the first valid element (<= n)
  int64_t valid = 0;  // elements of the block; 0 if the rank has none
  int64_t alloc = 0;  // elements that every rank allocates: the ceil size
};
Block blockOf(int64_t n, const DeviceMesh& mesh, const std::vector<MeshAxis>& axes, int64_t rank);

// Returns the Block::alloc that blockOf() computes, as a symbolic size. It is equal on all ranks.
Size allocBlock(const Size& n, const DeviceMesh& mesh, const std::vector<MeshAxis>& axes);

}  // namespace heddle
