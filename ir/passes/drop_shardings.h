#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Removes all shardings if the job has one rank, which holds every tensor completely. No
// collectives are then inserted, and passes that skip sharded values process all values. The stream
// splits that the user requested (ir/passes/note_stream_splits.h) then have no effect. If the job
// has several ranks, returns the fusion unchanged.
Fusion dropShardings(Fusion fusion, int64_t job_size);

}  // namespace heddle
