#pragma once

#include <cstdint>

#include "host/program/program.h"
#include "host/unroll/scope.h"

namespace heddle::host {

// The number of steps that unroll() visits for one rank. Each instruction that this rank executes
// is a step. A loop counts as one step per trip plus the steps of its body in each trip. A loop
// without a trip counts as one step. A branch counts as one step plus the steps of the body that
// the sizes select. If only the run decides the branch, both bodies count.
struct StepCount {
  int64_t steps = 0;
  // true: the program has at least `steps` steps. Counting has stopped early, or the number is too
  // large for an int64_t.
  bool at_least = false;
  // The instruction at the top level of the program that takes the most steps, and its index.
  // nullptr: the program has no instructions.
  const Instruction* largest = nullptr;
  InstructionIndex largest_index = -1;
};

// Counts the steps on the rank of `scope`, without creating them. Requires that the program
// contains no Call instruction. If the body of a loop has the same number of steps in every trip,
// the function counts the body once, so a long loop takes no more time than a short one. It counts
// all other loops trip by trip, and stops in such a loop soon after `most` steps. A loop or branch
// with a size that cannot be evaluated counts as one step, because unroll() reports the error.
StepCount countSteps(const Program& program, Scope& scope, int64_t most);

}  // namespace heddle::host
