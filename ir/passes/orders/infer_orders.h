#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Lets results follow the memory orders of the inputs, as hints (Layout::hint in
// ir/types/tensor.h). For example, inputs in NHWC order give results in NHWC order through
// pointwise ops, norms, reductions, cat, and reshapes that keep the channel axis.
//
// The pass visits the expressions once, forward from the inputs. When the pass visits an
// expression, the operands already have their final orders. orderAfter()
// (ir/passes/orders/followed_order.h) has the rules for one expression. The other rules are:
//  - The order of an input is its observed layout (Layout::observed). In a job of one rank, heddle
//    observes the layouts of each run. In a job of several ranks, the passes see only the layouts
//    that the text of the fusion states, because all ranks must have the same program.
//  - A value keeps a required or needed order, and a hint that an earlier pass or the text of the
//    fusion gives. The result of a `set` (an op that changes only the sharding or the layout) may
//    have no such order. It then follows the operand only if it is another name for the same data
//    (ReshardStep::Kind::Same). Otherwise the result is row-major.
//  - A required order has the same effect on results as the order of an input. A needed order or an
//    earlier hint has no such effect: followOrders has already decided which results follow it.
//  - If the op or a reader of the result would need a copy for the hinted order (OrderRefusals in
//    ir/passes/orders/order_refusals.h), the result stays row-major. Readers of the result then
//    follow the row-major order.
//  - Permutes, slices and reshapes that are views get no hint: their operand determines their
//    order. When the pass chooses an order for the value in whose memory such a view lies, it also
//    checks whether the readers of the view accept this order. The result of every other reshape is
//    row-major.
//  - Notes say where each hint comes from, and why an op refused a hint (order_notes.h).
//
// The pass runs after insertResharding and followOrders, which serve collectives, and before
// orderForReshapes and materializeViews, which need the final orders.
Fusion inferOrders(const Fusion& fusion);

}  // namespace heddle
