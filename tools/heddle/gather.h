#pragma once

#include <string>
#include <vector>

#include "comm/communicator.h"
#include "ir/types/host_tensor.h"
#include "tools/heddle/partial.h"

namespace heddle::tools {

// One output of all ranks.
struct Gathered {
  HostTensor whole;           // unsharded; each element as the lowest rank has it that holds it
  std::vector<Block> blocks;  // by rank, of those that hold some
  // Blocks in which some element has other bits than in `whole`, and the first such element.
  struct Difference {
    size_t block = 0;
    int64_t first = 0;  // row-major in `whole`
    int64_t count = 0;
  };
  std::vector<Difference> differences;

  std::string reduced;  // of which reductions over parts it is the result; empty: of none

  // The rank from which `whole` has the element; -1: nobody holds it.
  int holderOf(int64_t linear) const;
};

// Where an element of `whole` lies in a block; -1: not in it.
int64_t indexInBlock(const Block& block, int64_t linear, const std::vector<int64_t>& whole);
// And back.
int64_t indexInWhole(const Block& block, int64_t local, const std::vector<int64_t>& whole);

// Puts the blocks of one output together on rank 0 (the others get an empty one). Every rank's own
// copy is compared bit by bit where several hold an element. Parts of a partial value are reduced
// before, and count as one copy, of the first rank of their team. Collective over the job.
Gathered gatherOutput(comm::World& world, const HostTensor& local, const TensorDesc& desc,
                      const std::optional<PartialState>& partial = std::nullopt);

}  // namespace heddle::tools
