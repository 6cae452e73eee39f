#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Merges equal scalars: sizes of axes with the same extent, equal constants, and equal arithmetic
// on them. The host then computes each scalar once, and a kernel recognizes that two expressions
// that read the scalar are equal. Inputs are never merged, because the user may give them any
// values.
Fusion mergeScalars(const Fusion& fusion);

}  // namespace heddle
