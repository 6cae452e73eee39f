#pragma once

#include <string>
#include <vector>

#include "comm/communicator.h"
#include "ir/types/host_tensor.h"
#include "tools/heddle/partial.h"

namespace heddle::tools {

// One output, gathered from all ranks.
struct Gathered {
  HostTensor whole;  // the unsharded output; each element comes from the lowest rank with a block
                     // that contains it
  // In rank order: the blocks of the ranks that hold one (TensorDesc::held). If gatherOutput() has
  // reduced a partial value: the reduced blocks. Empty in a job of one rank.
  std::vector<Block> blocks;
  // Describes a block that differs from `whole` in at least one bit.
  struct Difference {
    size_t block = 0;   // index into `blocks`
    int64_t first = 0;  // row-major index in `whole` of the first element that differs
    int64_t count = 0;  // number of elements that differ
  };
  std::vector<Difference> differences;

  // The reductions that gatherOutput() applied to the parts of a partial value, as text (describe()
  // in tools/heddle/partial.h). Empty: none.
  std::string reduced;

  // Returns the rank from which `whole` has the element with the row-major index `linear`, or -1 if
  // no block contains the element.
  int holderOf(int64_t linear) const;
};

// Converts the index `linear` of an element in the unsharded tensor to an index in the block.
// `whole` are the sizes of the unsharded tensor. Both indices are row-major. Returns -1 if the
// block does not contain the element.
int64_t indexInBlock(const Block& block, int64_t linear, const std::vector<int64_t>& whole);
// Converts the index `local` of an element in the block to an index in the unsharded tensor of
// sizes `whole`. Both indices are row-major.
int64_t indexInWhole(const Block& block, int64_t local, const std::vector<int64_t>& whole);

// Gathers the blocks of one output on rank 0. The other ranks get an empty result. `local` is the
// block of this rank, and `desc` describes this block. If several ranks hold an element, compares
// their copies bit by bit. If `partial` is given, first reduces the blocks of each team (the ranks
// that hold parts of the same block). The result counts as one copy on the first rank of the team.
// All ranks of the job must call this function.
Gathered gatherOutput(comm::World& world, const HostTensor& local, const TensorDesc& desc,
                      const std::optional<PartialState>& partial = std::nullopt);

}  // namespace heddle::tools
