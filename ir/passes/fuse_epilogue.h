#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Fuses a relu into the matrix product that computes its operand, if nothing else reads the matrix
// product and the fusion does not return it. The matrix product must have no activation yet, and
// both results must have the same type and sharding. The relu becomes the attribute `activation` of
// the matrix product. The results are bit-identical, except that -0 may become +0:
//  - floats: the library applies relu before it rounds, and rounding keeps the sign.
//  - integers: a sum that overflows wraps, and the library applies relu to the wrapped sum.
// Other activations, and additions of a bias, stay separate expressions, because fusing them would
// remove one rounding. The pass runs after insertResharding, because that pass may insert a
// reduction between the matrix product and the relu.
Fusion fuseEpilogue(Fusion fusion);

}  // namespace heddle
