#pragma once

#include "host/program/program.h"
#include "ir/segment/segment.h"

namespace heddle::host {

// The only lowering: groups in order become Allocate + LaunchKernel / CallLibrary / Communicate +
// Wait / Alias on stream 0, scalars become Evaluate. No Free, no second stream: the passes of
// host/passes/pipeline.cpp add those. What belongs to a mesh that is not the whole job of
// `job_size` ranks runs on that mesh alone. Every reshard expression (Set with another sharding) is
// one of the steps of ir/analysis/reshard_step.h.
Program lower(const SegmentedFusion& segmented, int64_t job_size);

}  // namespace heddle::host
