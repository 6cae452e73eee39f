#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Separates bias and activation from matrix products whose reduced axis is split over devices. Bias
// and activation become separate ops after the reduction across devices. Without this pass, every
// device would add the bias, and would apply the activation to a partial sum. The rounding changes:
// each device rounds its partial sums to the type of the result. In an unsplit matrix product,
// intermediate sums are not rounded. The pass runs after propagateSharding, which chooses the axes
// that are split. It runs before insertResharding, which inserts the reduction.
Fusion splitLinear(Fusion fusion);

}  // namespace heddle
