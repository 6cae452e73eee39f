#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Computes the sizes of all mesh axes, and checks that every mesh fits in a job of `job_size`
// ranks. All later passes need these sizes. Throws UserError in the cases that concretizeMesh()
// (ir/types/mesh.h) and checkSizeSymbols() (ir/graph/verify.h) list.
Fusion concretizeMeshes(Fusion fusion, int64_t job_size);

}  // namespace heddle
