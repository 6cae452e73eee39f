#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Merges equal scalars. These scalars are equal:
//  - `size` ops of axes whose extents are the same constant or the same symbol, or of one axis of
//    one tensor
//  - constants with the same bits and dtype
//  - results of equal dtype that the same op with equal attributes computes from equal scalars
// The host then computes equal scalars once. Two kernel expressions that read equal scalars now
// have equal operands, so code generation can compute equal expressions once. Inputs are never
// merged, because the user may give them any values. An output of the fusion may replace later
// scalars, but no other scalar replaces an output.
Fusion mergeScalars(const Fusion& fusion);

}  // namespace heddle
