#pragma once

#include <cstdint>

#include "host/program/program.h"
#include "host/unroll/scope.h"

namespace heddle::host {

// The number of steps that unroll() visits. Each instruction and each further trip of a loop is a
// step. If a branch is decided at run time, both bodies count.
struct StepCount {
  int64_t steps = 0;
  bool at_least = false;  // the program takes more steps than `steps`
  // The instruction of the program's body that takes the most steps, and its index. nullptr: the
  // body is empty.
  const Instruction* largest = nullptr;
  InstructionIndex largest_index = -1;
};

// Counts the steps of a program without calls on the rank of `scope`, without creating them. Stops
// soon after `most` steps. The time depends on `most` and on the length of the program, but not on
// the number of trips: a loop whose trips are all alike is counted once. Ignores loops and branches
// whose sizes have no value; unroll() reports them.
StepCount countSteps(const Program& program, Scope& scope, int64_t most);

}  // namespace heddle::host
