#pragma once

#include <string>
#include <vector>

#include "ir/graph/fusion.h"

namespace heddle {

// What inferOrders (ir/passes/orders/infer_orders.h) knows about the memory order of a value.
struct KnownOrder {
  AxisOrder order;
  // Per axis: whether its elements come from memory. False for axes of one element, stretched axes
  // and the axes of generated tensors (full, iota). These axes have no memory order to follow.
  std::vector<bool> in_memory;
  // Whether the order comes from the inputs, so that results may follow it. False if a collective
  // needs the order: followOrders decides where such an order is of use.
  bool is_followed = true;
  std::string from;  // the input from which the order comes: "input %x"
};

// Returns the memory order that the result of an expression should have, by these rules:
//  - The operand with the most axes in memory decides, then the one with the widest type, then the
//    first one. Sizes decide nothing, so a program is valid for all sizes.
//  - The axes that the result shares with this operand keep its order. All other axes go outside.
//  - The columns of a matrix product stay innermost.
//  - If the shared axes are in ascending order, the result is row-major.
// `known` has the orders of the operands. A view of the result of this function is not known.
KnownOrder orderAfter(const Fusion& fusion, const Expression& expr,
                      const IdVector<ValueId, KnownOrder>& known);

}  // namespace heddle
