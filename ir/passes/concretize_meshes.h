#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Gives every mesh the sizes of its axes and checks that it fits in a job of `job_size` ranks. All
// later passes need these sizes. Throws UserError where concretizeMesh() or checkSizeSymbols()
// does.
Fusion concretizeMeshes(const Fusion& fusion, int64_t job_size);

}  // namespace heddle
