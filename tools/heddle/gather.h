#pragma once

#include <string>
#include <vector>

#include "comm/communicator.h"
#include "ir/types/host_tensor.h"
#include "tools/heddle/partial.h"

namespace heddle::tools {

// One output, gathered from all ranks.
struct Gathered {
  HostTensor whole;           // unsharded; each element comes from the lowest rank that holds it
  std::vector<Block> blocks;  // in rank order, of the ranks that hold elements
  // Blocks that differ from `whole` in a bit, with the first element that differs.
  struct Difference {
    size_t block = 0;
    int64_t first = 0;  // row-major in `whole`
    int64_t count = 0;
  };
  std::vector<Difference> differences;

  std::string reduced;  // the reductions that combined the parts of ranks; empty: none

  // Returns the rank from which `whole` has the element; -1: no rank holds it.
  int holderOf(int64_t linear) const;
};

// Converts a linear index of `whole` to an index in the block; -1: the block does not hold it.
int64_t indexInBlock(const Block& block, int64_t linear, const std::vector<int64_t>& whole);
// Converts an index in the block to a linear index of `whole`.
int64_t indexInWhole(const Block& block, int64_t local, const std::vector<int64_t>& whole);

// Gathers the blocks of one output on rank 0; the other ranks get an empty result. If several ranks
// hold an element, their copies are compared bit by bit. Parts of a partial value are reduced
// first; the result counts as one copy, held by the first rank of their team. Collective over the
// job.
Gathered gatherOutput(comm::World& world, const HostTensor& local, const TensorDesc& desc,
                      const std::optional<PartialState>& partial = std::nullopt);

}  // namespace heddle::tools
