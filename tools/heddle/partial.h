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

// Describes a partial value: each rank of a mesh holds a part of the value, and reductions over
// mesh axes combine the parts.
struct PartialState {
  Sharding sharding;
  DeviceMesh mesh;
};
// Returns the partial state of the tensor in a slot of a host program, or nullopt if the tensor is
// not partial.
std::optional<PartialState> partialOf(const host::Program& program, host::SlotId slot);

// Returns the reductions as text, such as "sum over y, max over x". The text lists them in the
// order of the sharding.
std::string describe(const PartialState& state);

// Splits the block `whole` into one part for each rank that shares it, so that the reduction of all
// parts gives `whole`. Returns the part of `rank`. A rank outside of the mesh gets `whole`.
// - If the block has at least as many elements as there are parts, almost every part differs from
//   `whole`. An op that wrongly treats a part as the full value then gives a wrong result. An
//   exception is, for example, a sum of zeros.
// - For sums and products, at most two ranks along a mesh axis have a part of an element that is
//   not the identity element (0 or 1).
// - The reduction of the parts gives exactly `whole`, except for the rounding of an average and the
//   sign of a zero.
// - If the value is partial over several mesh axes, the axis that the sharding lists last must be
//   reduced first.
HostTensor partOf(const HostTensor& whole, const PartialState& state, int64_t rank);

// Reduces the blocks of each team (the ranks that hold parts of the same block) in rank order.
// Replaces the block of the first rank of the team by the result, and removes the other blocks.
// Requires a block from every rank of the mesh.
void reduceParts(std::vector<Block>& blocks, const PartialState& state);

}  // namespace heddle::tools
