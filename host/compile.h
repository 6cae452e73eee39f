#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "host/cache_limits.h"
#include "host/program/pass_options.h"
#include "host/program/program.h"
#include "ir/graph/fusion.h"

namespace heddle::host {

// Options of compile(). They must be equal on all ranks of a job.
struct CompileOptions {
  PassOptions passes;
  CacheLimits caches = {};  // limits of the caches of a FusionExecutor; compile() ignores them
  // For a FusionExecutor: ExecutableOptions::check_numerics. compile() ignores it.
  bool check_numerics = false;
  // For a FusionExecutor: ExecutableOptions::kernel_choices and choices_only. compile() ignores
  // them.
  std::map<std::string, std::string> kernel_choices = {};
  bool choices_only = false;
};

// Compiles a fusion to a host program, the list of instructions that every rank executes. The
// compilation has four stages:
// 1. Passes on the fusion choose, for example, the shardings.
// 2. Segmentation splits the fusion into segments (groups of expressions). Each segment becomes a
//    kernel, a library call, a collective, a view, or a cat (a tensor into which other segments
//    write their results).
// 3. Lowering translates each segment to instructions.
// 4. Passes on the program add, for example, streams and synchronization.
// An input of the fusion may state its memory order and which axes are contiguous
// (Layout::Observed). The program then accepts only tensors whose strides fit this layout for that
// input.
// `job_size` is the number of ranks of the job. If an axis of a mesh has no declared size,
// `job_size` decides its size.
// Ranks that pass equal arguments get equal programs.
// Throws UserError if the fusion cannot be lowered, or if an option is wrong.
Program compile(const Fusion& fusion, int64_t job_size, const CompileOptions& options = {});

}  // namespace heddle::host
