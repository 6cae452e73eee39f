#pragma once

#include <cstdint>

#include "host/program/pass_options.h"
#include "host/program/program.h"
#include "ir/graph/fusion.h"

namespace heddle {
struct SegmentOptions;  // ir/segment/segment.h
}

namespace heddle::host {

// Options of compile(). They must be equal on all ranks of a job.
struct CompileOptions {
  // Options of the passes on the host program. `passes.skip` may also name passes on the fusion.
  PassOptions passes;
};

// Compiles a fusion to a host program in four stages:
// 1. Passes on the fusion choose, for example, the shardings.
// 2. Segmentation (ir/segment/segment.h) splits the fusion into groups, such as kernels and
//    collectives.
// 3. Lowering (host/lower/lower.h) translates each group to instructions.
// 4. Passes on the program add, for example, streams and synchronization.
// An input of the fusion may state a memory order and its contiguity (Layout::Observed). The
// program then accepts only tensors with this layout for that input.
// `job_size` is the number of ranks of the job. If an axis of a mesh has no declared size,
// `job_size` decides its size.
// The result is deterministic: ranks that pass equal arguments get equal programs.
// Throws UserError if the fusion cannot be lowered, or if an option is wrong.
Program compile(const Fusion& fusion, int64_t job_size, const CompileOptions& options = {});

// Compiles for a device that has a library for attention. `library` selects the attentions that the
// library computes as one call. The selection depends on the sizes of the attentions. Compile the
// fusion again if decidingSizes() (host/device/attention.h) returns different values for the sizes
// of a new run.
Program compile(const Fusion& fusion, int64_t job_size, const CompileOptions& options,
                const SegmentOptions& library);

}  // namespace heddle::host
