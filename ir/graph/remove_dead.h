#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Removes all expressions that no output needs. All inputs remain, because they are the signature
// of the fusion. The pass runs before the passes that choose shardings, so that removed values
// cannot affect the shardings of other values.
Fusion removeDead(Fusion fusion);

}  // namespace heddle
