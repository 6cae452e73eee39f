#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Removes all expressions that no output needs. All inputs remain, because they are the signature.
// The pass runs before shardings are chosen, so that dead values do not affect the shardings of
// live ones.
Fusion removeDead(const Fusion& fusion);

}  // namespace heddle
