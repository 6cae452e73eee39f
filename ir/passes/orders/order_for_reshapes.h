#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Chooses memory orders that make copies before reshapes unnecessary. A reshape that is not a view
// needs a row-major operand. The operand may be a permuted view of a value that a kernel or matrix
// product computes. This value can then be stored in the order that makes the view row-major. For
// example, %o has the axes [heads, tokens, width]:
//
//   %o = matmul(%p, %v)               // stored in the order [tokens, heads, width]
//   %s = permute(%o, axes=[1, 0, 2])  // row-major
//   %r = reshape(%s, sizes=[tokens, heads*width])
//
// The pass sets the hinted order (Layout::hint in ir/types/tensor.h) of a value if all
// of these conditions are true:
//  - A pointwise op, a reduction or a matrix product computes the value. For a matrix product, the
//    last axis is innermost in the hinted order.
//  - Only permutes read the value, and it is not an output of the fusion.
//  - The value has no order that the user requires or that an operation needs, and no hinted order
//    yet.
//  - All reshapes that read a permuted view of the value need the same order, and none is a view
//    already.
//  - No reader of the value or of its views refuses the order (OrderRefusals in
//    ir/passes/orders/order_refusals.h).
Fusion orderForReshapes(const Fusion& fusion);

}  // namespace heddle
