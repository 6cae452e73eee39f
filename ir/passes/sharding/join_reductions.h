#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Joins reductions whose results are only added or subtracted. Each device adds the partial values
// first, and only the sum is reduced. The gradient of an input of several matrix products
// (dq wq' + dk wk' + dv wv') then needs one allreduce instead of three.
//
// This applies to allreduces and reduce-scatters that sum over the same team. The order of rounding
// changes, as in every sum that is split over devices. The pass runs after insertResharding, which
// inserts the reductions.
Fusion joinReductions(const Fusion& fusion);

}  // namespace heddle
