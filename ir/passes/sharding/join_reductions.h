#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Afterwards no sum or difference is taken of two values that were each reduced over the same team
// for it alone: the partial values are added on each device, and what comes out is reduced once.
// So the gradient of an input of several products (dq wq' + dk wk' + dv wv') takes one allreduce.
// Allreduces and reduce-scatters of sums; the order of rounding changes as it does wherever a sum
// is split over devices. After insertResharding, which makes the reductions.
Fusion joinReductions(const Fusion& fusion);

}  // namespace heddle
