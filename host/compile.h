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

// Compiles a fusion to a host program: passes on the fusion, segmentation, lowering, passes on the
// program. The fusion states the memory order and the contiguity of each input. The program is
// valid only for inputs with these layouts.
// `job_size` is the number of ranks. A mesh without a declared size gets its size from it.
// The result is deterministic: every rank that passes equal arguments gets an equal program.
// UserError: the fusion cannot be lowered, or an option is wrong.
Program compile(const Fusion& fusion, int64_t job_size, const CompileOptions& options = {});

// Compiles for a device that has a library for attention. `library` says which attentions the
// library computes. The program is valid for all sizes for which decidingSizes()
// (host/device/attention.h) returns equal values.
Program compile(const Fusion& fusion, int64_t job_size, const CompileOptions& options,
                const SegmentOptions& library);

}  // namespace heddle::host
