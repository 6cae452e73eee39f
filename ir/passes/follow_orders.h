#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Propagates hinted memory orders (Layout::allocation_order in ir/types/tensor.h) from operands to
// results. A collective may need the rows of a matrix product in an order that is not row-major.
// This pass keeps this order of the rows from one matrix product to the next. The axes batch and
// tokens then stay adjacent in memory, so that a library can treat them as one axis.
//
// A result gets the hinted order of its operands if all of these conditions are true:
//  - The op is pointwise or a matrix product [..., k] x [k, n]. For a pointwise op, all operands
//    with all axes of the result have the same hint. For a matrix product, the first operand has
//    the hint.
//  - The hint keeps the last axis innermost.
//  - The result has no required or hinted order and is not an output of the fusion.
//  - Only pointwise ops and matrix products [..., k] x [k, n] read the result. A matrix product
//    reads it only as its first operand.
//
// The pass runs after insertResharding, which sets the hints, and before materializeViews, which
// needs the final orders.
Fusion followOrders(const Fusion& fusion);

}  // namespace heddle
