#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Ensures that every reshape is a view, that is, copies no data. A reshape is a view if its operand
// is row-major and has no gaps. If the operand %name of a reshape is not row-major or has gaps, the
// pass inserts a `set` that copies it to %name_packed. For example, this happens if the operand is
// the result of a permute or a slice, or has an order that is not row-major in its layout
// (ir/types/tensor.h).
//
// If inferOrders (ir/passes/orders/infer_orders.h) found that the reshape is a view of memory in
// another order, the pass writes it as views instead: %name_memory permutes the axes to memory
// order, %name_regrouped is the reshape, and %name permutes the axes back.
//
// The pass runs last, because it needs the final memory orders.
Fusion materializeViews(const Fusion& fusion);

}  // namespace heddle
