#pragma once

#include <string>

#include "ir/graph/fusion.h"

namespace heddle {

// Finds the hinted memory orders that would cost more than they save, because an op needs a copy:
//  - A collective needs the axis that it joins or splits to be outermost. Existing copies for
//    collectives are kept, because their memory may be padded.
//  - A reshape that is no view of memory in this order (reshapeInMemory() in
//    ir/analysis/reshape_order.h) needs a row-major operand.
//  - A matrix product needs its batch axes to be outermost and in ascending order: only then does a
//    library compute all batches in one call. Rows of a matrix product [b, m, k] x [k, n] may be in
//    any order, because b and m become one axis.
// Kernels are checked later, after segmentation (ir/segment/settle_orders.h).
class OrderRefusals {
 public:
  explicit OrderRefusals(const Fusion& fusion);

  // Returns "" if the expression that computes the value and all its readers accept the order.
  // Otherwise returns which op refuses it, and why.
  std::string whyNot(ValueId id, const AxisOrder& order) const;
  // Like whyNot(), but asks only the readers.
  std::string whyNotReader(ValueId id, const AxisOrder& order) const;

 private:
  const Fusion& fusion_;
  const IdVector<ValueId, std::vector<ExprId>> users_;
};

// Returns whether the expression is a `set` that copies nothing and requires no order.
bool isOtherName(const Fusion& fusion, const Expression& expr);

}  // namespace heddle
