#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Ensures that every reshape is a view, by giving it a row-major operand. Operands with another
// order or with gaps (a permute, a slice, a hinted or observed order) are copied first by a `set`
// named %name_packed. The pass runs last, because only then are all memory orders final.
Fusion materializeViews(const Fusion& fusion);

}  // namespace heddle
