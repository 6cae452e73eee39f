#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Joins several reductions across devices into one if their results are only added to or subtracted
// from each other. Each device first adds its partial values; then one collective reduces the sum.
// For example, an attention computes q = x wq, k = x wk and v = x wv. The gradient of x is dq wq^T
// + dk wk^T + dv wv^T, where dq, dk and dv are the gradients of q, k and v. After the pass, the
// gradient of x needs one allreduce instead of three.
//
// The pass joins allreduces, or reduce-scatters, that sum over the same ranks, if all of this is
// true:
//  - Nothing else reads the results, and they are not outputs of the fusion.
//  - The sum of the results has their dtype, shape and sharding. The dtype is not bool.
//  - Only pointwise ops, reductions, matrix products and broadcasts read this sum.
//  - The user requires no memory order for this sum.
// The rounding changes, because the values are added in a different order. The pass runs after
// insertResharding, which inserts the reductions.
Fusion joinReductions(Fusion fusion);

}  // namespace heddle
