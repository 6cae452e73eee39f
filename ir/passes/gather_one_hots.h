#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Replaces a sum over an axis by a read of one element, if at most one element along the axis
// contributes to the sum:
//
//   sum over axis a of where(position along a == index, value, 0)
//
// becomes `value` at `index`, or 0 if the index is outside of the axis. `index` is an i32 or i64
// tensor. cross_entropy contains such a sum. The pass computes `value` again, but only at `index`.
// It reads the tensors from which pointwise ops compute `value` (the *sources*) with
// take_along_axis, and repeats these ops. The results are bit-identical, with one exception: if the
// element is -0, the sum would be +0, but the pass returns -0.
//
// The pass does not change a sum in these cases:
//  - The sum adds integers or bools.
//  - The index, `value`, a source or the result of an op between source and `value` has a sharding.
//    Each rank could then have only a part of the axis.
//  - A source would have to be stored first, because an op other than a pointwise op or a matrix
//    product computes it.
//  - The index or a source is stretched along an axis of the operand of the sum.
//  - `value` has no source with more than one element along the axis, for example because it is a
//    constant.
Fusion gatherOneHots(Fusion fusion);

}  // namespace heddle
