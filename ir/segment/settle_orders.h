#pragma once

#include "ir/segment/segment.h"

namespace heddle {

// Removes the hinted memory order of a value if the order slows down a segment that reads or stores
// the value. The value is then row-major. A value has the same order for the segment that stores it
// and for all segments that read it, because a slot of the host program has one order. Required and
// needed orders never change. Notes (ir/passes/orders/order_notes.h) say which segment refused a
// hint.
//
// These segments refuse a hint:
//  - A kernel of several passes over rows, for example a softmax, if the reduced axes would not be
//    innermost in a value that it reads or stores. Each pass would then read elements that are not
//    neighbours. The kernel refuses only if all its hints of this kind can be removed; if only some
//    were removed, it would have to transpose.
//  - A call that computes an attention, if the last axis of an operand would not be innermost. The
//    library would then copy the operand.
// A hint can be removed if a kernel or a library call computes the value, only kernels and library
// calls read it, and it is not an output of the fusion.
void settleOrders(SegmentedFusion& segmented);

}  // namespace heddle
