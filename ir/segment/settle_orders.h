#pragma once

#include "ir/segment/segment.h"

namespace heddle {

// Asks the segments whether the hinted memory orders at their boundaries slow them down. A hint
// that a segment refuses is removed, so the value is row-major. A slot of the host program has one
// order, so the segments on both sides of the boundary are planned for the order that is left.
// Required and needed orders never change. Notes (ir/passes/orders/order_notes.h) say which segment
// refused.
//
// These segments refuse a hint:
//  - A kernel of several passes over rows, for example a softmax, if the reduced axes would not be
//    innermost in a value that it reads or stores: each pass would read elements that are not
//    neighbours. The kernel refuses only if all its hints of this kind can be removed. Otherwise it
//    would have to transpose.
//  - A call that computes an attention, if the last axis of an operand would not be innermost: the
//    library would copy the operand.
// A hint can be removed if a kernel computes the value, only kernels and library calls read it, and
// it is not an output of the fusion.
void settleOrders(SegmentedFusion& segmented);

}  // namespace heddle
