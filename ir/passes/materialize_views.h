#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Ensures that every reshape is a view, that is, copies no data. A reshape is a view if its operand
// is row-major and has no gaps. If the operand %x of a reshape is not row-major or has gaps, the
// pass inserts a `set` that copies it to %x_packed. For example, the result of a permute is not
// row-major, and the result of a slice has gaps. A layout (ir/types/tensor.h) may also state
// another order.
//
// inferOrders (ir/passes/orders/infer_orders.h) may have found that a reshape is a view of memory
// in another order. The pass then writes the reshape with the result %y as three views: %y_memory
// permutes the axes to memory order, %y_regrouped is the reshape, and %y permutes the axes back.
//
// The pass runs last, because it needs the final memory orders.
Fusion materializeViews(const Fusion& fusion);

}  // namespace heddle
