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

// Describes a value of which each rank holds a part, and the reductions that combine the parts.
struct PartialState {
  Sharding sharding;
  DeviceMesh mesh;
};
std::optional<PartialState> partialOf(const host::Program& program, host::SlotId slot);

// Describes the reductions: "sum over x", or "sum over y, max over x".
std::string describe(const PartialState& state);

// Returns the part of `rank` of a block, such that reducing the parts of all ranks gives `whole`.
// - No part equals `whole` if the block has at least as many elements as there are parts. An op
//   that wrongly treats a part as the unsplit value therefore gives a wrong result.
// - Parts of sums and products are neutral on all but two ranks.
// - The result is exact, except for the rounding of an average and the sign of a zero.
// - Of several axes, the one that the sharding lists last is reduced first.
HostTensor partOf(const HostTensor& whole, const PartialState& state, int64_t rank);

// Reduces the blocks of each team, in rank order, into the block of its first rank, and removes the
// others. Requires a block from every rank of the mesh.
void reduceParts(std::vector<Block>& blocks, const PartialState& state);

}  // namespace heddle::tools
