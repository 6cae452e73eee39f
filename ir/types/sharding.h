#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/base/size.h"
#include "ir/types/mesh.h"

namespace heddle {

enum class ReduceOp : uint8_t { Sum, Prod, Min, Max, Avg };  // Avg accepts only floats
std::string_view name(ReduceOp op);
std::optional<ReduceOp> reduceOpFromName(std::string_view text);

// Describes how one tensor is split over the devices of a mesh. Each mesh axis appears at most once
// in a sharding. Several mesh axes may split one axis of the tensor. The first one in the list then
// splits the axis into large blocks, and each further one splits these blocks (see Block). If a
// mesh axis does not appear in the sharding, all devices along this mesh axis hold the same data.
struct Sharding {
  // Each device along `axis` holds a partial value. The reduction of the partial values with `op`
  // gives the value of the tensor.
  struct Partial {
    MeshAxis axis;
    ReduceOp op;
    bool operator==(const Partial&) const = default;
  };
  // A request of the user to compute and communicate the tensor in `chunks` blocks along one
  // logical axis, one block after another.
  struct StreamSplit {
    int64_t axis;    // logical axis
    int64_t chunks;  // number of blocks
    bool operator==(const StreamSplit&) const = default;
  };

  MeshId mesh{0};
  std::vector<std::vector<MeshAxis>> axes;  // per logical axis: the mesh axes that split it
  std::vector<Partial> partial;
  std::optional<StreamSplit> stream;

  bool operator==(const Sharding&) const = default;

  bool isReplicated() const;  // neither sharded, partial nor stream split
  bool isPartial() const { return !partial.empty(); }
  bool isSharded(size_t logical_axis) const;
  // Returns the logical axis that is split over the mesh axis `axis`, or -1 if there is none.
  int logicalAxisOf(MeshAxis axis) const;

  // Returns the text form: `shard(@m, 1: x)`, `shard(@m, 0: [y, x])`, or `shard(@m)` if no axis is
  // sharded. The text continues with ` partial(sum: x)` for a partial tensor, and with
  // ` stream(0: 4)` for a stream split.
  std::string str(const DeviceMesh& mesh) const;
};

// The block that one rank holds of an axis of extent n. The axis is split over an ordered list of
// mesh axes. The first mesh axis, with d devices, splits the extent into blocks of ceil(n / d)
// elements. Each further mesh axis splits the blocks of the mesh axis before it in the same way. An
// allgather over the last mesh axis of the list therefore undoes exactly the last split.
struct Block {
  int64_t begin = 0;  // index of the first valid element in the unsharded axis (<= n)
  int64_t valid = 0;  // elements of the block; 0 if the rank has none
  int64_t alloc = 0;  // elements that every rank allocates: the rounded-up block size
};
Block blockOf(int64_t n, const DeviceMesh& mesh, const std::vector<MeshAxis>& axes, int64_t rank);

// Returns the Block::alloc that blockOf() computes, as a symbolic size. All ranks have the same
// Block::alloc.
Size allocBlock(const Size& n, const DeviceMesh& mesh, const std::vector<MeshAxis>& axes);

}  // namespace heddle
