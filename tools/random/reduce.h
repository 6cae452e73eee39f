#pragma once

#include <functional>

#include "tools/random/random_fusion.h"

namespace heddle::random {

// Returns whether a case still shows the fault. An exception counts as false.
using StillFails = std::function<bool(const FusionCase&)>;

// Returns a case that still fails, and that is smaller if possible. Tries these steps, and keeps
// the result of a step only if the fault remains:
// - drop outputs and expressions
// - turn values into inputs with the values that the reference computes, or replace values by
//   operands of their expressions
// - shrink extents
// - at the end: make layouts dense, and replace elements of inputs by 1 or by the nearest integers
//
// Ends when no step makes the case smaller, or after `limit` tries.
FusionCase reduce(FusionCase failing, const StillFails& still_fails, int limit = 2000);

}  // namespace heddle::random
