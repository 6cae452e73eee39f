#pragma once

#include "host/program/program.h"
#include "ir/segment/segment.h"

namespace heddle::host {

// Lowers a segmented fusion to a host program for a job of `job_size` ranks. No other function
// lowers fusions.
//
// - The groups are translated in order, all on stream 0. A group (ir/segment/segment.h) becomes
//   Allocate and LaunchKernel, Allocate and CallLibrary, Communicate and Wait, or Alias. Scalars
//   become Evaluate.
// - The program has no Free and no second stream. The passes of host/passes/pipeline.cpp add them.
// - Instructions for values on a mesh that is smaller than the job run on the ranks of that mesh.
// - Every `set` that changes the sharding of a value must be one of the steps of
//   ir/analysis/reshard_step.h.
Program lower(const SegmentedFusion& segmented, int64_t job_size);

}  // namespace heddle::host
