#pragma once

#include <vector>

#include "codegen/bind/candidates.h"
#include "codegen/bind/launch_work.h"
#include "codegen/bind/machine.h"

namespace heddle::codegen {

// Predicts the time of kernels without running them. The inputs of a kernel are not in a cache at
// its start.

// Returns the predicted seconds of one launch without Machine::launch_seconds.
// - Moving bytes, computing, and waiting overlap, so the slowest of them decides.
// - Cuda: the multiprocessors run the blocks in waves. A wave is as long as the loads and exchanges
//   for which one thread waits. Few bytes in flight therefore mean many waves or many steps.
// - Cpp: the threads share the tiles. If the last tiles do not suffice for all threads, some wait.
//   An addition to an accumulator waits for the previous one.
double secondsOf(const LaunchWork& work, const Machine& machine);

// Returns the predicted seconds of each candidate. `numbers` is the result of candidateNumbers().
std::vector<double> predictedSeconds(const std::vector<Candidate>& all,
                                     const std::vector<KernelNumbers>& numbers,
                                     const Machine& machine);

}  // namespace heddle::codegen
