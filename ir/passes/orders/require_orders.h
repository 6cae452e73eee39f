#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Gives each output the memory order that the user requires, no matter which op computes it. After
// this pass, each output with an order (Fusion::outputOrders()) is a value whose Layout::required
// is this order, and no view has a required order.
//  - If a kernel, library call or collective computes the output, the pass sets Layout::required of
//    this value. Exception: if the fusion also stores the value in an input with another order
//    (Fusion::reuses()), the pass copies the value, so that the value itself can have the order of
//    the input.
//  - If a view %name has a required order, the view is renamed to %name_view, and %name becomes a
//    copy of %name_view.
//  - An input, and a value that several outputs return, keep their names. If such an output needs a
//    copy in the required order, the pass inserts `%name_ordered = set(%name)`.
// An inserted value has the sharding of the output. The pass runs before the passes that move data,
// so that they can store results in the required orders.
Fusion requireOrders(Fusion fusion);

// Throws UserError if an output does not have the memory order that the user requires. The cause is
// then that requireOrders was skipped.
void checkRequiredOrders(const Fusion& fusion);

}  // namespace heddle
