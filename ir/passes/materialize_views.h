#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Ensures that every reshape is a view, that is, copies no data. A reshape is a view if its operand
// is row-major and has no gaps. If the operand %name of a reshape is not row-major or has gaps, the
// pass inserts a `set` that copies it to %name_packed. For example, this happens if the operand is
// the result of a permute or a slice, or has an order that is not row-major in its layout
// (ir/types/tensor.h). The pass runs last, because it needs the final memory orders.
Fusion materializeViews(const Fusion& fusion);

}  // namespace heddle
