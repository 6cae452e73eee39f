#pragma once

#include <cstddef>
#include <cstdint>

namespace heddle::host {

// Limits of the caches of an Executable or a FusionExecutor. A full cache drops its least recently
// used entries. A run in flight keeps the plan and the program that it uses. Executable::Stats
// counts the dropped entries.
struct CacheLimits {
  // Limits for the plans of one program (host/plan/plan.h): their number, and the bytes of their
  // steps and arguments. A FusionExecutor also has one table of the plans of all its programs, with
  // the same limits. A plan that is dropped only from this table still exists, and later runs find
  // it.
  size_t plans = 1024;
  int64_t plan_bytes = int64_t{256} << 20;
  // Largest number of programs of a FusionExecutor. All ranks of a job must have the same limit.
  size_t programs = 64;
  // Most bytes of kernels that the device has loaded. A new plan that exceeds the limit unloads the
  // kernels that were prepared first. A plan keeps its kernels. If unloading kernels without a plan
  // is not enough, plans are dropped too. These kernels always stay: those of the new plan, of runs
  // in flight, of runs whose outputs the caller holds, and of PreparedRuns. An unloaded kernel is
  // loaded again from the image cache when a plan needs it.
  int64_t kernel_bytes = int64_t{512} << 20;
};

}  // namespace heddle::host
