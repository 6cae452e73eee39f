#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Lets results follow the memory orders of the inputs, as hints (Layout::hint in
// ir/types/tensor.h). For example, inputs in NHWC order give results in NHWC order through
// pointwise ops, norms, reductions, cat, and reshapes that keep the channel axis.
//
// The pass visits the expressions once, forward from the inputs. orderAfter()
// (ir/passes/orders/followed_order.h) has the rules for one expression. Its operands already have
// their final orders.
//  - The order of an input is its observed layout. In a job of one rank, heddle observes the
//    layouts of each run. In a job of several ranks, only the orders in the text count, because all
//    ranks must have the same program.
//  - A value with a required or needed order, or with a hint of an earlier pass, keeps it. A `set`
//    without an order follows its operand only if it would copy nothing without this pass.
//    Otherwise it is a copy in row-major order.
//  - Results follow a required order as they follow the order of an input. They do not follow an
//    order that a collective needs, except where followOrders decided so.
//  - If the op or a reader of the result would need a copy for the hinted order (OrderRefusals in
//    ir/passes/orders/order_refusals.h), the result stays row-major. Its readers follow this order.
//  - Permutes, slices and reshapes that are views get no hint: their operand determines their
//    order. An order of a value is refused if a reader of one of its views refuses it.
//  - Notes say where each hint comes from and why a hint was undone (order_notes.h).
//
// The pass runs after insertResharding and followOrders, which serve collectives, and before
// orderForReshapes and materializeViews, which need the final orders.
Fusion inferOrders(const Fusion& fusion);

}  // namespace heddle
