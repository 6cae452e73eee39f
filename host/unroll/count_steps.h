#pragma once

#include <cstdint>

#include "host/program/program.h"
#include "host/unroll/scope.h"

namespace heddle::host {

// The number of steps that unroll() visits. Each instruction of this rank is a step. A loop counts
// as one step per trip plus the steps of its body in each trip. A loop without a trip counts as one
// step. If a branch is decided at run time, both bodies count.
struct StepCount {
  int64_t steps = 0;
  bool at_least = false;  // true: counting has stopped early; the program takes at least `steps`
  // The instruction at the top level of the program that takes the most steps, and its index.
  // nullptr: the body is empty.
  const Instruction* largest = nullptr;
  InstructionIndex largest_index = -1;
};

// Counts the steps on the rank of `scope`, without creating them. Requires that the program
// contains no Call instruction. A body that has the same number of steps in every trip is counted
// once, so a long loop takes no more time than a short one. All other loops are counted trip by
// trip, and counting stops soon after `most` steps. A loop or branch with a size that cannot be
// evaluated counts as one step, because unroll() reports the error.
StepCount countSteps(const Program& program, Scope& scope, int64_t most);

}  // namespace heddle::host
