#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Removes all shardings if the job has one rank. The rank then holds every tensor completely, so no
// value has to move, and the passes that leave sharded values alone apply. Stream splits, which
// split the work of a collective, disappear too. Otherwise returns the fusion unchanged.
Fusion dropShardings(const Fusion& fusion, int64_t job_size);

}  // namespace heddle
