#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Joins several reductions across devices into one if their results are only added to or subtracted
// from each other. Each device first adds its partial values; then one collective reduces the sum.
// An example is the gradient of a value that three matrix products read: dq wq' + dk wk' + dv wv'.
// It needs one allreduce instead of three.
//
// The pass joins allreduces, or reduce-scatters, that sum over the same ranks. The rounding
// changes, because the sums are computed in another order. The pass runs after insertResharding,
// which inserts the reductions.
Fusion joinReductions(const Fusion& fusion);

}  // namespace heddle
