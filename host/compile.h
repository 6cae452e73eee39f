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

// Compiles a fusion to a host program in four stages: passes on the fusion, segmentation, lowering,
// passes on the program.
// An input of the fusion may state a memory order and its contiguity (Layout::Observed). The
// program then accepts only tensors with this layout for that input.
// `job_size` is the number of ranks of the job. One axis of a mesh may have no declared size;
// `job_size` then decides its size.
// The result is deterministic: ranks that pass equal arguments get equal programs.
// Throws UserError if the fusion cannot be lowered, or if an option is wrong.
Program compile(const Fusion& fusion, int64_t job_size, const CompileOptions& options = {});

// Compiles for a device that has a library for attention. `library` selects the attentions that the
// library computes as one call. This selection depends on sizes. Therefore compile again for sizes
// for which decidingSizes() (host/device/attention.h) returns other values.
Program compile(const Fusion& fusion, int64_t job_size, const CompileOptions& options,
                const SegmentOptions& library);

}  // namespace heddle::host
