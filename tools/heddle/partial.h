#pragma once

#include <optional>
#include <string>
#include <vector>

#include "host/program/program.h"
#include "ir/types/host_tensor.h"

namespace heddle::tools {

// The block of an output that one rank holds.
struct Block {
  int rank = 0;
  std::vector<int64_t> offset;  // in the unsharded tensor
  HostTensor data;
};

// Describes a partial value: each rank holds a part, and reductions combine the parts.
struct PartialState {
  Sharding sharding;
  DeviceMesh mesh;
};
// Returns the state of a slot (a tensor of a host program), or nullopt if it is not partial.
std::optional<PartialState> partialOf(const host::Program& program, host::SlotId slot);

// Returns the reductions as text: "sum over x", or "sum over y, max over x".
std::string describe(const PartialState& state);

// Splits the block `whole` into one part per rank, so that the reduction of all parts gives
// `whole`. Returns the part of `rank`.
// - If the block has at least as many elements as there are parts, no part equals `whole`. An op
//   that wrongly treats a part as the full value therefore gives a wrong result.
// - For sums and products, each element is the identity element (0 or 1) on all ranks except two.
// - The reduction of the parts gives exactly `whole`, except for the rounding of an average and the
//   sign of a zero.
// - If there are several mesh axes, the axis that the sharding lists last is reduced first.
HostTensor partOf(const HostTensor& whole, const PartialState& state, int64_t rank);

// Reduces the blocks of each team (the ranks that hold parts of the same block) in rank order. The
// result replaces the block of the first rank of the team; the other blocks are removed. Requires a
// block from every rank of the mesh.
void reduceParts(std::vector<Block>& blocks, const PartialState& state);

}  // namespace heddle::tools
