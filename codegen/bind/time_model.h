#pragma once

#include <vector>

#include "codegen/bind/candidates.h"
#include "codegen/bind/launch_work.h"
#include "codegen/bind/machine.h"

namespace heddle::codegen {

// The functions below predict the time of kernels without running them. They assume that the inputs
// of a kernel are not in a cache when the kernel starts.

// Returns the predicted seconds of one launch, or one part of a shared launch, without
// Machine::launch_seconds. The model:
// - A launch moves bytes, computes and waits at the same time, so the slowest of these activities
//   decides.
// - Cuda: the multiprocessors run the blocks in waves. A wave takes as long as the loads and
//   exchanges for which one thread waits. If few bytes are loaded at the same time, there are many
//   waves, or many steps per wave.
// - Cpp: the threads share the tiles. If there are fewer tiles left than threads, some threads
//   wait. An addition to an accumulator waits for the previous addition to it.
double secondsOf(const LaunchWork& work, const Machine& machine);

// Returns the predicted seconds of each candidate, with all its launches. `numbers` is the result
// of candidateNumbers().
std::vector<double> predictedSeconds(const std::vector<Candidate>& all,
                                     const std::vector<KernelNumbers>& numbers,
                                     const Machine& machine);

}  // namespace heddle::codegen
