#pragma once

#include <string>

#include "ir/graph/fusion.h"

namespace heddle {

// Finds hinted memory orders that would cost more than they save, because an op would need a copy:
//  - A collective needs the axis that it joins or splits to be outermost, and insertResharding has
//    already chosen the order of its operand. A value that a collective reads therefore refuses
//    every hint.
//  - A `set` may copy a value into the order that a collective needs. The value refuses exactly
//    this order. With it, the `set` would copy nothing, but the collective may need the separate,
//    padded memory.
//  - A reshape needs a row-major operand if it is not a view of memory in the hinted order
//    (reshapeInMemory() in ir/analysis/reshape_order.h).
//  - A matrix product needs its batch axes to be outermost and in ascending order. Only then can a
//    library compute all batches in one call. In a matrix product [b, m, k] x [k, n], b or m may be
//    outermost if the last axis is innermost, because the library treats b and m as one axis. This
//    applies to the first operand and the result.
// Kernels are checked later, after segmentation (ir/segment/settle_orders.h).
class OrderRefusals {
 public:
  explicit OrderRefusals(const Fusion& fusion);

  // Returns "" if the expression that computes the value, and all readers of the value and of its
  // views, accept the order. Otherwise returns which op refuses it, and why. Requires that the
  // value is not an input.
  std::string whyNot(ValueId id, const AxisOrder& order) const;
  // Like whyNot(), but asks only the readers.
  std::string whyNotReader(ValueId id, const AxisOrder& order) const;

 private:
  const Fusion& fusion_;
  const IdVector<ValueId, std::vector<ExprId>> users_;
};

// Returns whether the result of the expression is only another name of the operand, in the same
// memory. The expression is then a `set` that copies nothing, and its result has no required and no
// needed order.
bool isOtherName(const Fusion& fusion, const Expression& expr);

}  // namespace heddle
