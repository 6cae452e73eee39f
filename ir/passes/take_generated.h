#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Computes takes from generated values without storing the generated values. A value is generated
// if pointwise ops, broadcasts and expands compute it only from indices (iota), constant elements
// (full) and scalars. A take or take_along_axis needs its operand in memory. The pass replaces the
// take by ops that compute the selected elements from their indices. An index out of range still
// gives NaN, or 0 for integers and bools.
//
// The pass does not change a take in these cases:
//  - The index, the result, the generated value, or a value from which it is computed has a
//    sharding.
//  - The fusion returns the generated value, or an op other than these reads it: pointwise ops,
//    broadcasts, expands, reductions, `size`, and ops that read at computed indices.
//  - The index is generated too, as in a cat. catsOf() (ir/segment/cat.h) recognizes a cat by its
//    ops, so they must not change.
//  - The result has an axis of one element.
//  - More than 64 expressions compute the generated value.
Fusion takeGenerated(Fusion fusion);

}  // namespace heddle
