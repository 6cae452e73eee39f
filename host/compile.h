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
  // Options of the passes on the host program. `skip` also takes names of passes on the fusion.
  PassOptions passes;
};

// Compiles a fusion to a host program: passes on the fusion, segmentation, lowering, passes on the
// program. The program is valid for inputs of one layout class, which the fusion states.
// `job_size` is the number of ranks; meshes without a size take theirs from it.
// The result is deterministic: every rank that passes equal arguments gets an equal program.
// UserError: a fusion that cannot be lowered, a wrong option.
Program compile(const Fusion& fusion, int64_t job_size, const CompileOptions& options = {});

// Compiles for a device that has a library for attention. `library` says which attentions the
// library computes. The program is valid for all sizes with equal decidingSizes()
// (host/device/attention.h).
Program compile(const Fusion& fusion, int64_t job_size, const CompileOptions& options,
                const SegmentOptions& library);

}  // namespace heddle::host
