#pragma once

#include <string>

#include "ir/graph/fusion.h"

namespace heddle {

// Knows where a hinted memory order would cost more than it saves.
//  - Collective: the axis that it joins or splits must be outermost. A hint would need a copy. A
//    copy for a collective stays a copy, because its memory may be padded.
//  - Reshape: an operand that is not row-major needs a copy, except if the reshape is a view of
//    memory in this order (ir/analysis/reshape_order.h).
//  - Matrix product: a library computes all batches in one call only if the batch axes are
//  outermost
//    and in ascending order. Rows of a product [b, m, k] x [k, n] may be in any order, because b
//    and m become one axis.
// Kernels are not asked here, because they are not known yet (ir/segment/settle_orders.h).
class OrderRefusals {
 public:
  explicit OrderRefusals(const Fusion& fusion);

  // Returns "" if the expression that computes the value and all its readers accept the order.
  // Otherwise returns who refuses it and why.
  std::string whyNot(ValueId id, const AxisOrder& order) const;

 private:
  std::string whyNotReader(ValueId id, const AxisOrder& order) const;

  const Fusion& fusion_;
  const IdVector<ValueId, std::vector<ExprId>> users_;
};

// Returns whether the expression is a `set` that copies nothing and requires no order.
bool isOtherName(const Fusion& fusion, const Expression& expr);

// Returns whether a reshape of an operand in memory order `order` is a view.
bool isViewInMemory(const Fusion& fusion, const Expression& reshape, const AxisOrder& order);

}  // namespace heddle
