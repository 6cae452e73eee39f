#pragma once

#include <cstddef>
#include <cstdint>

namespace heddle::host {

// Limits of the caches of an Executable or a FusionExecutor. A full cache drops its least recently
// used entries. A run in flight keeps the plan and the program that it uses. Executable::Stats
// counts the dropped programs, and the plans that were dropped from the cache of a program.
struct CacheLimits {
  // Limits for the plans of one program: their number, and the bytes of their lists (steps,
  // arguments and so on) and kernels. A plan is a program bound to a device and to the shapes of a
  // run (host/executable.h). The bytes of a kernel count for the plan that has loaded it. The
  // newest plan stays in the cache, even if it alone exceeds the limit of bytes. A FusionExecutor
  // also has one table of the plans of all its programs, with the same limits. A plan that only
  // this table drops stays in the cache of its program, where later runs find it.
  size_t plans = 1024;
  int64_t plan_bytes = int64_t{256} << 20;
  // Largest number of programs of a FusionExecutor. All ranks of a job must have the same limit.
  size_t programs = 64;
  // Limit for the kernel images and texts that are loaded, in bytes. If the creation of a plan
  // exceeds it, heddle unloads kernels that no plan uses, until the limit holds or no such kernel
  // is left. Kernels that new plans have not needed for the longest time are unloaded first. A
  // dropped plan keeps its kernels while outputs of its runs exist, and until later runs reuse the
  // internal objects of its runs. If a later plan needs an unloaded kernel, heddle loads it again
  // from the image cache, or compiles it if the image cache no longer contains it. Unloading may
  // wait for the GPU.
  int64_t kernel_bytes = int64_t{256} << 20;
};

}  // namespace heddle::host
