#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Separates bias and activation from matrix products whose reduced axis is split over devices. They
// become separate ops after the reduction across devices; otherwise every device would add the
// bias. Each device rounds its partial sums to the type of the result. An unsplit matrix product
// does not round its intermediate sums. The pass runs after propagateSharding, which decides which
// axes are split, and before insertResharding, which inserts the reduction.
Fusion splitLinear(const Fusion& fusion);

}  // namespace heddle
