#pragma once

#include <cstdint>

#include "host/cache_limits.h"
#include "host/program/pass_options.h"
#include "host/program/program.h"
#include "ir/graph/fusion.h"

namespace heddle {
struct SegmentOptions;  // ir/segment/segment.h
}

namespace heddle::host {

// Options of compile(). They must be equal on all ranks of a job.
struct CompileOptions {
  PassOptions passes;
  CacheLimits caches = {};  // of a FusionExecutor; compile() ignores them
};

// Compiles a fusion to a host program, the list of instructions that every rank executes. The
// compilation has four stages:
// 1. Passes on the fusion choose, for example, the shardings.
// 2. Segmentation (ir/segment/segment.h) splits the fusion into groups, such as kernels and
//    collectives.
// 3. Lowering (host/lower/lower.h) translates each group to instructions.
// 4. Passes on the program add, for example, streams and synchronization.
// An input of the fusion may state its memory order and which axes are contiguous
// (Layout::Observed). The program then accepts only tensors with this layout for that input.
// `job_size` is the number of ranks of the job. If an axis of a mesh has no declared size,
// `job_size` decides its size.
// Ranks that pass equal arguments get equal programs.
// Throws UserError if the fusion cannot be lowered, or if an option is wrong.
Program compile(const Fusion& fusion, int64_t job_size, const CompileOptions& options = {});

// Compiles for a device that has a library for attention. `library` selects the attentions that the
// library computes as one call. The selection depends on the sizes of the run. If decidingSizes()
// (host/device/attention.h) returns new values for a later run, compile the fusion again.
Program compile(const Fusion& fusion, int64_t job_size, const CompileOptions& options,
                const SegmentOptions& library);

}  // namespace heddle::host
