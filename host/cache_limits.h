#pragma once

#include <cstddef>
#include <cstdint>

namespace heddle::host {

// Limits of the caches of an Executable or a FusionExecutor. A full cache drops what has not been
// used for the longest time. Runs in flight keep what they use. Stats counts what was dropped.
struct CacheLimits {
  // Most plans (host/plan/plan.h) of a program, and most bytes of their steps and arguments. A
  // FusionExecutor also applies the limits to its table of the plans of all programs. A plan that
  // is only dropped from this table is found again without being created.
  size_t plans = 1024;
  int64_t plan_bytes = int64_t{256} << 20;
  // Most programs of a FusionExecutor. All ranks of a job must have the same limit.
  size_t programs = 64;
  // Most bytes of kernels that the device has loaded. A new plan that exceeds the limit unloads the
  // kernels that were prepared first. A plan keeps its kernels. If unloading kernels without a plan
  // is not enough, plans are dropped too. These kernels always stay: those of the new plan, of runs
  // in flight, of runs whose outputs the caller holds, and of PreparedRuns. An unloaded kernel is
  // loaded again from the image cache when a plan needs it.
  int64_t kernel_bytes = int64_t{512} << 20;
};

}  // namespace heddle::host
