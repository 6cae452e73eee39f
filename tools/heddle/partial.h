#pragma once

#include <optional>
#include <string>
#include <vector>

#include "host/program/program.h"
#include "ir/types/host_tensor.h"

namespace heddle::tools {

// What one rank holds of an output.
struct Block {
  int rank = 0;
  std::vector<int64_t> offset;  // in the unsharded tensor
  HostTensor data;
};

// The state of a value that is a reduction over the parts that ranks hold of it.
struct PartialState {
  Sharding sharding;
  DeviceMesh mesh;
};
std::optional<PartialState> partialOf(const host::Program& program, host::SlotId slot);

// "sum over x", "sum over y, max over x"
std::string describe(const PartialState& state);

// What a rank of the mesh gets of a block that is `whole` once the parts are reduced. Of a block
// with as many elements as parts no part is the whole, so that an op that takes a part for the
// whole shows; parts of sums and products are neutral but in two ranks' places. They give the whole
// exactly, but for the rounding of an average and the sign of a zero. Of several axes the one
// written last is reduced first.
HostTensor partOf(const HostTensor& whole, const PartialState& state, int64_t rank);

// Reduces the blocks of each team, in the order of its ranks, into that of its first rank; the
// others go. All ranks of the mesh are there.
void reduceParts(std::vector<Block>& blocks, const PartialState& state);

}  // namespace heddle::tools
