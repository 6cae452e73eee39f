#pragma once

#include "ir/segment/segment.h"

namespace heddle {

// Removes the hinted memory order of a value if the order slows down a segment that reads or stores
// the value. (A hint is a memory order that a pass of ir/passes/orders suggests.) The value is then
// row-major. One segment stores the value and others read it. All of them use the same order,
// because a slot of the host program has one order. An order that the user requires, or that an
// operation needs, never changes. Notes (ir/passes/orders/order_notes.h) say which segment refused
// a hint.
//
// These segments refuse a hint:
//  - A kernel that reduces rows (the elements along the reduced axes) and also stores a value that
//    has reduced axes, for example a softmax. It reads each row in several sweeps (passes). It
//    refuses a hint of a value that it reads or stores if the value has reduced axes, but with the
//    hint another axis is innermost. Each sweep would then read elements that are not neighbours.
//    The kernel refuses only if the removal makes a reduced axis innermost in all such values.
//    Otherwise it would have to transpose in any case.
//  - A call that computes an attention. It refuses if the last axis of an operand would not be
//    innermost. The library would then copy the operand.
// A hint can be removed if only kernels and library calls compute and read the value. The value
// must not be an output of the fusion.
void settleOrders(SegmentedFusion& segmented);

}  // namespace heddle
