#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Makes a relu the activation of the matrix product before it, if only the relu reads the matrix
// product. The bits stay the same: the library applies relu before it rounds, and rounding keeps
// the sign. For integers the library applies relu after wrapping. Other activations and a bias stay
// separate expressions, because fusing them would remove one rounding. The pass runs after
// insertResharding, which may insert a reduction between the two.
Fusion fuseEpilogue(const Fusion& fusion);

}  // namespace heddle
