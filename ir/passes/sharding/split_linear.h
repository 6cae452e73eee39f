#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Afterwards no product whose reduced axis is spread over devices has a bias or an activation: they
// follow as ops of their own, behind the reduction, so that the bias is added once. Partial sums
// are rounded to their type where the whole product would not have been. After propagateSharding,
// which decides what is spread, and before insertResharding, which puts the reduction in between.
Fusion splitLinear(const Fusion& fusion);

}  // namespace heddle
