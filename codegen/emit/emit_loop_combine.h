#pragma once

#include "codegen/emit/kernel_text.h"
#include "codegen/plan/loop_nest.h"

namespace heddle::codegen {

// Writes the CUDA text that combines the accumulators of a LoopNest. When this text begins, each
// thread has its states in the arrays `acc0`, `acc1`, ... The order of the combination is fixed, so
// results are reproducible.
class LoopCombiner {
 public:
  LoopCombiner(TextWriter& out, const LoopNest& nest) : out_(out), nest_(nest), s_(nest.schedule) {}

  // Returns the number of states of a thread: one per lane, or one for all lanes.
  int32_t states(AccumulatorId a) const;
  // Declares the arrays. Initially their states contain no elements.
  void declare();
  // Combines the states of an inner reduction. In the text, `share` numbers the threads of a row.
  // At the end, element 0 of the arrays of the thread with share 0 has the result of the row.
  void rows();
  // Combines the states of an outer reduction. At the end, element `lane` of the arrays of the
  // thread with share 0 has the result of column `lane`.
  void columns();

 private:
  const Accumulator& accumulator(AccumulatorId a) const {
    return nest_.computation.accumulators[a];
  }
  void lanes(AccumulatorId a);
  void row(AccumulatorId a);
  void column(AccumulatorId a);

  TextWriter& out_;
  const LoopNest& nest_;
  const Schedule& s_;
};

}  // namespace heddle::codegen
