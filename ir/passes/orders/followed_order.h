#pragma once

#include <string>
#include <vector>

#include "ir/graph/fusion.h"

namespace heddle {

// The memory order of a value, as far as inferOrders (ir/passes/orders/infer_orders.h) knows it.
struct KnownOrder {
  AxisOrder order;
  // Per axis: whether the elements along the axis come from memory. False for axes of one element,
  // stretched axes and the axes of generated tensors (full, iota). These axes have no memory order
  // to follow.
  std::vector<bool> in_memory;
  // Whether results may follow the order. True for inputs, and if the user requires the order.
  // Otherwise false in these cases:
  //  - A collective needs the order. followOrders then decides which results follow it.
  //  - The order is a hint of an earlier pass or of the text of the fusion.
  //  - A `set` copies or moves the value.
  //  - The value has its order from an operand for which is_followed is false.
  bool is_followed = true;
  std::string from;  // the origin of the order: "input %x", "required order of %y"
};

// Returns the memory order that the result of an expression should have, by these rules:
//  - One operand decides: the operand with the most axes in memory (KnownOrder::in_memory). Among
//    several of these, the one with the widest type decides, or the first one if the types are
//    equally wide. Sizes have no influence, so that a program is valid for all sizes.
//  - The result shares an axis with this operand if the axis is in memory and corresponds to an
//    axis of the result. The shared axes keep the operand's order. All other axes of the result are
//    outside of them, in ascending order.
//  - The last axis of a matrix product (the columns of its result) stays innermost.
//  - If the shared axes are in ascending order, the result is row-major. It is also row-major if
//    all operands are scalars.
// `known` has the orders of the operands. KnownOrder::is_followed and KnownOrder::from of the
// result are those of the deciding operand. An axis of the result is in memory if a corresponding
// axis of any operand is.
KnownOrder orderAfter(const Fusion& fusion, const Expression& expr,
                      const IdVector<ValueId, KnownOrder>& known);

}  // namespace heddle
