#pragma once

#include <cstdint>

#include "host/program/program.h"
#include "host/unroll/scope.h"

namespace heddle::host {

// The number of steps that unroll() visits. Each instruction is a step. A loop counts as one step
// per trip, in addition to the steps of its body. If a branch is decided at run time, both bodies
// count.
struct StepCount {
  int64_t steps = 0;
  bool at_least = false;  // the program takes more steps than `steps`
  // The instruction of the program's body that takes the most steps, and its index. nullptr: the
  // body is empty.
  const Instruction* largest = nullptr;
  InstructionIndex largest_index = -1;
};

// Counts the steps on the rank of `scope`, without creating them. Requires that the program
// contains no Calls. Stops soon after `most` steps. A body that has the same number of steps in
// every trip is counted once, so a long loop takes no more time than a short one. Ignores loops and
// branches whose sizes have no value; unroll() reports them.
StepCount countSteps(const Program& program, Scope& scope, int64_t most);

}  // namespace heddle::host
