#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Propagates the memory orders that collectives need (Layout::needed in ir/types/tensor.h) from
// operands to results, as hints (Layout::hint). For example, a collective that joins the tokens of
// [batch, tokens, width] needs a tensor with the tokens outermost in memory. Results that are
// computed from this tensor then have the same order, so that a library can treat batch and tokens
// as one axis.
//
// A result gets the order of its operands if all of these conditions are true. Here, the order of
// an operand is its needed order or, without one, its hinted order.
//  - The op is pointwise or a matrix product [..., k] x [k, n], or `linear` with a weight [n, k].
//    For a pointwise op, all tensor operands that are not broadcast have the same order. For a
//    matrix product, the first operand decides.
//  - The order is not row-major, and the last axis is innermost in it.
//  - The result has no order that the user requires or that an operation needs, has no hinted order
//    yet, and is not an output of the fusion.
//  - Only pointwise ops and matrix products [..., k] x [k, n] read the result. A matrix product
//    reads it only as its first operand.
//
// The pass runs after insertResharding, which sets the needed orders, and before materializeViews,
// which needs the final orders.
Fusion followOrders(const Fusion& fusion);

}  // namespace heddle
