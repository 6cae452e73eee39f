#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Ensures that every reshape is a view. A reshape is a view if its operand is row-major and has no
// gaps. The pass inserts a `set` named %name_packed that copies every other operand: the result of
// a permute or a slice, or a value with a hinted or observed order. The pass runs last, because all
// memory orders must be final.
Fusion materializeViews(const Fusion& fusion);

}  // namespace heddle
