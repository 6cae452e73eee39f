#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Replaces a sum in which at most one element of each line counts by a read of this element:
//
//   sum over axis a of where(position along a == index, value, 0)
//
// becomes `value` at `index`, or 0 if the index is outside of the axis. cross_entropy contains such
// a sum. The pass computes `value` again for one element per line: it reads the tensors behind
// `value` with take_along_axis and repeats the pointwise ops between them and `value`. The results
// are bit-identical, except that a sum never gives -0.
//
// The pass leaves a sum alone in these cases:
//  - A value is sharded. Each rank then has only a part of the positions.
//  - A tensor behind `value` would have to be stored first, because an op other than a pointwise op
//    or a matrix product computes it.
//  - The index or a tensor behind `value` is stretched along an axis of the sum.
Fusion gatherOneHots(const Fusion& fusion);

}  // namespace heddle
