#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Gives each output the memory order that the user requires, no matter which op computes it. After
// this pass, each output with an order (Fusion::outputOrders()) is a value whose Layout::required
// is this order, and no view has a required order.
//  - If a kernel, library call or collective computes the output, the pass sets Layout::required of
//    this value. Exceptions: the value already has another required order, or the fusion also
//    stores the value in an input with another order (Fusion::reuses()). The fusion then returns a
//    copy in the required order.
//  - If the output is an input or a view, the fusion also returns a copy.
//  - Such a copy of %name gets the name %name, and the value is renamed to %name_view. Exception:
//    an input, and a value that several outputs return, keep their names, and the copy is
//    %name_ordered.
//  - A view %name may have a required order although it is no output. The view is then renamed to
//    %name_view, and %name becomes a copy of it.
// A copy has the sharding of the value. The pass runs before the passes that move data, so that
// they can store results in the required orders.
Fusion requireOrders(Fusion fusion);

// Throws UserError if an output does not have the memory order that the user requires. The cause is
// then that requireOrders was skipped.
void checkRequiredOrders(const Fusion& fusion);

}  // namespace heddle
