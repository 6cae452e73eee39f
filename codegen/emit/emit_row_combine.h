#pragma once

#include <string>
#include <vector>

#include "codegen/emit/kernel_text.h"
#include "codegen/tile/program.h"

namespace heddle::codegen {

// Writes the CUDA text that combines the partial states of accumulators. When this text begins,
// each thread of a row has its states in the arrays `acc0`, `acc1`, ... An array has one state if
// addsTogether() is true for its accumulator, otherwise one state per lane. When the text ends,
// element 0 of each array is the result of the row, in every thread. The order is fixed: lanes,
// threads of a warp, warps.
class RowCombiner {
 public:
  RowCombiner(TextWriter& out, const RowLayout& layout,
              const std::vector<Accumulator>& accumulators)
      : out_(out), layout_(layout), accumulators_(accumulators) {}

  void parts(const std::vector<int>& accumulators);

 private:
  const Accumulator& accumulator(int a) const { return accumulators_[static_cast<size_t>(a)]; }
  void lanes(int a);
  void threads(const std::vector<int>& accumulators);
  void partners(int a, int first_mask);

  TextWriter& out_;
  const RowLayout& layout_;
  const std::vector<Accumulator>& accumulators_;
};

}  // namespace heddle::codegen
