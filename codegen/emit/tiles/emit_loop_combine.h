#pragma once

#include "codegen/emit/kernel_text.h"
#include "codegen/tile/program.h"

namespace heddle::codegen {

// Writes the CUDA text that combines the accumulators of a program of items. codegen/plan/body.h
// explains states, and codegen/plan/schedule.h explains lanes, inner and outer reductions. When
// this text begins, each thread has its states in the arrays `acc0`, `acc1`, ..., one array per
// accumulator with a state. The text combines the states in a fixed order, so results are
// reproducible. If the reduced items are divided into ranges (Schedule::splits), each block
// computes the states of only one range.
class LoopCombiner {
 public:
  LoopCombiner(TextWriter& out, const TileProgram& program)
      : out_(out), program_(program), frame_(program.frame), s_(*program.items) {}

  // Returns the number of states of a thread: one per lane. Exception: an inner reduction for which
  // addsTogether() (codegen/emit/accumulator_text.h) returns true has one state for all lanes.
  int32_t states(AccumulatorId a) const;
  // Returns whether columns() needs shared memory, the variable `scratch`.
  bool usesScratch() const;
  // Writes the declaration of this variable, if it is needed.
  void declareScratch();
  // Writes the declarations of the arrays. Their states contain no elements at first.
  void declare();
  // Combines the states of an inner reduction. The text uses two variables of the kernel: `share`
  // is the number of the thread among the threads that reduce the same row, and `column` is the
  // number of this row in the block. At the end, element 0 of the arrays of the thread with share 0
  // has the final state of the row.
  void rows();
  // Combines the states of an outer reduction, in which each lane has its own column. Here `share`
  // counts the threads that reduce the same columns, and `column` is the number of their item in
  // the block. At the end, element i of the arrays of the thread with share 0 has the final state
  // of the column of lane i. If blocks overlap (Schedule::overlaps), the last column of the block
  // has no final state.
  void columns();

 private:
  const Accumulator& accumulator(AccumulatorId a) const { return frame_.accumulators[a]; }
  void lanes(AccumulatorId a);
  void row(AccumulatorId a);
  void column(AccumulatorId a);

  TextWriter& out_;
  const TileProgram& program_;
  const KernelFrame& frame_;
  const Schedule& s_;
};

}  // namespace heddle::codegen
