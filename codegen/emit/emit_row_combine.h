#pragma once

#include <string>
#include <vector>

#include "codegen/emit/kernel_text.h"
#include "codegen/tile/program.h"

namespace heddle::codegen {

// Returns the number of parts into which a thread splits an accumulator. Lane i of a vector belongs
// to part i % parts. Four parts suffice, because an addition takes four cycles. More would cost
// registers and additions.
int32_t lanePartsOf(const Accumulator& accumulator, const RowLayout& layout);

// Writes the CUDA text that combines the parts of accumulators. When this text begins, each thread
// of a row has its parts in the arrays `acc0`, `acc1`, ... At the end, element 0 of each array is
// the result of the row, in every thread. The order is fixed: lanes, threads of a warp, warps.
class RowCombiner {
 public:
  RowCombiner(TextWriter& out, const RowLayout& layout,
              const IdVector<AccumulatorId, Accumulator>& accumulators)
      : out_(out), layout_(layout), accumulators_(accumulators) {}

  void parts(const std::vector<AccumulatorId>& accumulators);

 private:
  const Accumulator& accumulator(AccumulatorId a) const { return accumulators_[a]; }
  void lanes(AccumulatorId a);
  void threads(const std::vector<AccumulatorId>& accumulators);
  void partners(AccumulatorId a, int first_mask);

  TextWriter& out_;
  const RowLayout& layout_;
  const IdVector<AccumulatorId, Accumulator>& accumulators_;
};

}  // namespace heddle::codegen
