#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Separates bias and activation from matrix products whose reduced axis is split over devices. They
// become ops after the reduction, so that the bias is added once. The partial sums are rounded to
// the type of the result, unlike the intermediate sums of an unsplit matrix product. The pass runs
// after propagateSharding, which decides what is split, and before insertResharding, which inserts
// the reduction.
Fusion splitLinear(const Fusion& fusion);

}  // namespace heddle
