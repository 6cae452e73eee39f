#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Propagates hinted memory orders from operands to results. A collective may need the rows of a
// matrix product in an order that is not row-major. With this pass the rows keep that order from
// one matrix product to the next. The axes batch and tokens then remain adjacent in memory, like
// one axis.
//
// A result gets the hinted order of its operands if all of this holds:
//  - Its op is pointwise or a matrix product. If it is pointwise, all operands that have all axes
//    of the result must have the same hint. If it is a matrix product [..., k] x [k, n], the first
//    operand must have the hint.
//  - The hint keeps the last axis innermost.
//  - The result has no required or hinted order and is not an output of the fusion.
//  - Only pointwise ops and matrix products read the result. A matrix product must read it as its
//    first operand.
//
// The pass runs after insertResharding, which sets the hints, and before materializeViews, which
// needs the final orders.
Fusion followOrders(const Fusion& fusion);

}  // namespace heddle
