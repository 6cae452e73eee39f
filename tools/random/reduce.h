#pragma once

#include <functional>

#include "tools/random/random_fusion.h"

namespace heddle::random {

// Whether a case still shows the fault. What it throws counts as no.
using StillFails = std::function<bool(const FusionCase&)>;

// A smaller case that still fails: outputs, expressions and inputs are dropped, values become
// inputs that hold what the reference gives them, extents shrink, layouts become dense and numbers
// simple, each step kept only when the fault stays. Ends when no step helps, or after `limit`
// tries.
FusionCase reduce(FusionCase failing, const StillFails& still_fails, int limit = 2000);

}  // namespace heddle::random
