#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Ensures that every reshape is a view. A reshape is a view if its operand is row-major and has no
// gaps. If the operand %name of a reshape is not row-major or has gaps, the pass inserts a `set`
// that copies it to %name_packed. Examples are the result of a permute or a slice, and a value with
// a hinted or observed order. The pass runs last, because it needs the final memory orders.
Fusion materializeViews(const Fusion& fusion);

}  // namespace heddle
