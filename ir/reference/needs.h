#pragma once

#include <vector>

#include "ir/reference/elements.h"
#include "ir/reference/selection.h"

namespace heddle {

// The elements that an expression must compute and read to give the wanted elements of its result.
struct Needs {
  // The elements of the result that the expression computes. They include the wanted elements, and
  // may include more. For example, the elements of a scan depend on each other, so it computes all
  // elements along its axis.
  Selection computed;
  // Per operand: the elements that the expression reads to compute `computed`. The Selection of a
  // scalar operand has no axes.
  std::vector<Selection> operands;
};

// Returns the needs of an expression that is not a leaf (a Constant or SizeOf), for the elements
// `wanted` of its result. Throws UserError like accessesOf() (ir/reference/elements.h) for a slice
// or reshape.
Needs needsOf(const ReferenceContext& context, const Expression& expr, const Selection& wanted);

// Evaluates the elements `wanted` of a reshape, and returns them as a dense tensor. `value`
// contains the elements `held` of the operand.
HostTensor reshapedElements(const ReferenceContext& context, const Expression& expr,
                            const HostTensor& value, const Selection& held,
                            const Selection& wanted);

}  // namespace heddle
