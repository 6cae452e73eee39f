#pragma once

#include "host/program.h"
#include "ir/segment.h"

namespace heddle::host {

// The only lowering: groups in order become Allocate + LaunchKernel / CallLibrary / Communicate +
// Wait / Alias on stream 0, scalars become Evaluate. No Free, no second stream: the passes of
// host/pipeline.cpp add those. Every reshard expression (Set with another sharding) becomes the
// steps of design section 7; UserError names one that no step covers.
Program lower(const SegmentedFusion& segmented);

}  // namespace heddle::host
