#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Gives each output the memory order that the user requires, whatever computes it. After this pass,
// each output with an order (Fusion::outputOrders()) is a value whose Layout::required is this
// order, and no view has a required order.
//  - If a kernel, library call or collective computes the output, the pass sets Layout::required of
//    this value.
//  - Otherwise the pass inserts `%name_ordered = set(%name)`, which copies the output. This is the
//    case for an input, for a view, and for a value that already has a different required order
//    because it is returned twice.
//  - A view %name with a required order becomes a copy of the view, which is then called
//    %name_view.
// The pass copies the sharding of each value. It runs before the passes that move data, so that
// they can store results in the required orders.
Fusion requireOrders(const Fusion& fusion);

// Throws UserError if an output does not have the memory order that the user requires. The cause is
// then that requireOrders was skipped.
void checkRequiredOrders(const Fusion& fusion);

}  // namespace heddle
