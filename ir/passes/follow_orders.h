#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Propagates hinted memory orders forward. Rows that a collective needs in another order than
// row-major then keep this order from one matrix product to the next, and batch and tokens remain
// one axis in memory.
//
// A result gets the hinted order of its operands if all of this holds:
//  - Its op is pointwise, and all operands that have all axes of the result share the hint; or it
//    is a matrix product [..., k] x [k, n], and the first operand has the hint.
//  - The hint keeps the last axis innermost.
//  - The result has no required or hinted order and is not an output of the fusion.
//  - Only ops of these two kinds read the result; a matrix product reads it as its rows.
//
// The pass runs after insertResharding, which sets the hints, and before materializeViews, which
// needs the final orders.
Fusion followOrders(const Fusion& fusion);

}  // namespace heddle
