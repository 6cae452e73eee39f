#pragma once

#include <sched.h>

#include <algorithm>
#include <thread>

namespace heddle {

// Returns the number of CPUs on which the calling thread may run. Tools such as taskset, mpirun and
// Slurm restrict a process to some CPUs. The number that std::thread::hardware_concurrency()
// returns ignores this restriction. With more busy threads than CPUs, a matrix product can take
// twice as long.
inline int usableCpus() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  if (sched_getaffinity(0, sizeof cpus, &cpus) == 0) return std::max(1, CPU_COUNT(&cpus));
  // The kernel knows more CPUs than fit in cpu_set_t.
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace heddle
