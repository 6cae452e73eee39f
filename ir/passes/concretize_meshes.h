#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Computes the sizes of mesh axes that depend on the size of the job, as in `[x=ranks]`. Checks
// that every mesh fits in a job of `job_size` ranks. Call this before any pass that compares meshes
// or counts their devices. Throws UserError in the cases that concretizeMesh() (ir/types/mesh.h)
// and checkSizeSymbols() (ir/graph/verify.h) list.
Fusion concretizeMeshes(Fusion fusion, int64_t job_size);

}  // namespace heddle
