#pragma once

#include <string>
#include <vector>

#include "codegen/emit/kernel_text.h"
#include "codegen/tile/program.h"

namespace heddle::codegen {

// Returns the number of parts into which a thread splits an accumulator of a program with rows
// (codegen/tile/program.h). A *part* is a state that combines some of the thread's elements.
// - In a bundle, there is one part per row of the bundle.
// - If the elements of a vector are added together (addsTogether()), there is one part.
// - Otherwise, there are at most four parts, and lane i of a vector belongs to part i % parts. Four
//   parts suffice, because an addition takes four cycles. More parts would cost registers and
//   additions.
int32_t lanePartsOf(const Accumulator& accumulator, const RowLayout& layout);

// Writes the CUDA text that combines the parts of accumulators. When this text begins, each thread
// of a row has its parts in the arrays `acc0`, `acc1`, ... At the end, element 0 of each array is
// the state of the row (in divided rows: of the part of the row), in every thread of the row. In a
// bundle, element i is the state of row i of the bundle. The order is fixed: lanes, threads of a
// warp, warps, blocks of a cluster.
class RowCombiner {
 public:
  RowCombiner(TextWriter& out, const RowLayout& layout,
              const IdVector<AccumulatorId, Accumulator>& accumulators)
      : out_(out), layout_(layout), accumulators_(accumulators) {}

  // Combines all parts.
  void parts(const std::vector<AccumulatorId>& accumulators);
  // Combines element 0 of each array over the threads of the row. Requires that the other elements
  // are not used.
  void threads(const std::vector<AccumulatorId>& accumulators);

 private:
  const Accumulator& accumulator(AccumulatorId a) const { return accumulators_[a]; }
  void lanes(AccumulatorId a);
  void warps(const std::vector<AccumulatorId>& accumulators);
  void blocks(const std::vector<AccumulatorId>& accumulators);
  void declarePeers(const std::vector<AccumulatorId>& accumulators, int count);
  void combinePeers(AccumulatorId a, const std::string& into, int count, const std::string& at);
  void bundles(const std::vector<AccumulatorId>& accumulators);
  void forLanes(const std::string& statement);

  TextWriter& out_;
  const RowLayout& layout_;
  const IdVector<AccumulatorId, Accumulator>& accumulators_;
  // true: the text has already waited until all blocks of the cluster have started.
  bool all_have_started_ = false;
};

}  // namespace heddle::codegen
