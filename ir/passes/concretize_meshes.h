#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Afterwards every mesh has the sizes of its axes and fits in a job of `job_size` ranks. Here
// because all later passes ask a mesh for its size. UserError of concretizeMesh() and
// checkSizeSymbols().
Fusion concretizeMeshes(const Fusion& fusion, int64_t job_size);

}  // namespace heddle
