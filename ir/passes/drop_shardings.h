#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Removes all shardings if the job has one rank, which holds every tensor completely. No
// collectives are then inserted, and passes that skip sharded values process all values. If the job
// has several ranks, returns the fusion unchanged.
//
// In a job of one rank, requests of the user to compute a value in several parts
// (ir/passes/note_stream_splits.h) therefore have no effect: the lowering (host/lower) stores such
// a request in the sharding of a slot, and no slot has a sharding.
Fusion dropShardings(Fusion fusion, int64_t job_size);

}  // namespace heddle
