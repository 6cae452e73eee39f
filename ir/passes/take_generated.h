#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Replaces a take or take_along_axis from a generated value: a value that pointwise ops, broadcasts
// and expands compute from indices (iota), constant elements (full) and scalars alone. A take needs
// its operand in memory. The pass computes only the elements that the take selects, from their
// indices, so the generated value needs no memory. An index out of range still gives NaN, or 0 for
// integers and bools.
//
// The pass leaves a take alone in these cases:
//  - The generated value, or a value behind it, or the index, is sharded.
//  - The fusion returns the generated value, or an op other than a kernel's reads it.
//  - The index is generated too. It is then a part of a cat (ir/segment/cat.h), or is itself cheap.
//  - The result has an axis of one element.
Fusion takeGenerated(const Fusion& fusion);

}  // namespace heddle
