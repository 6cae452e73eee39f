#pragma once

#include "codegen/emit/kernel_text.h"
#include "codegen/tile/program.h"

namespace heddle::codegen {

// Writes the CUDA text of the arrays `values`, in which a reduction loop collects elements. One
// call of hd::add() adds the collected elements to the state of an accumulator (addsTogether()).
//
// A *step* of the loop computes the items (codegen/plan/schedule.h) that a thread loads at once.
// The arrays hold the elements of all items of a step, one item after another. The variable `valid`
// counts these elements. Exception: if an item before the last one of a step may have fewer
// elements than lanes, such arrays would have gaps. The arrays then hold the elements of one item
// only.
class JointValues {
 public:
  JointValues(TextWriter& out, const TileProgram& program);

  // Writes the declarations of the arrays for one step, if they hold the elements of a step.
  void beginStep();
  // Writes the declarations of the arrays for one item, if they hold the elements of one item.
  void beginItem();
  // Returns the expression of the array entry for one element: the element in lane `lane` (a
  // variable of the text) of item `slot` of the step. Requires addsTogether() of the accumulator.
  std::string entry(AccumulatorId a, const char* slot) const;
  // Writes text that counts the elements of an item. In an inner reduction, these are the elements
  // in `count` lanes (a variable of the text). In an outer reduction, each lane has its own array,
  // and an item adds one element to it. If the arrays hold one item, also writes the calls that add
  // the elements to the states.
  void endItem();
  // If the arrays hold the elements of a step, writes the calls that add these to the states.
  void endStep();

 private:
  void declare();
  void add();

  TextWriter& out_;
  const Schedule& s_;
  const bool inner_;
  const bool per_item_;
  std::vector<AccumulatorId> accumulators_;  // the accumulators with addsTogether()
};

}  // namespace heddle::codegen
