#pragma once

#include <vector>

#include "ir/reference/elements.h"
#include "ir/reference/selection.h"

namespace heddle {

// The elements that an expression must compute and read to give the wanted elements of its result.
struct Needs {
  // The elements of the result that the expression computes. They include the wanted elements. An
  // op whose elements along an axis depend on each other, such as a scan, computes all elements
  // along this axis.
  Selection computed;
  // Per operand: the elements from which `computed` is computed. A scalar operand has no axes.
  std::vector<Selection> operands;
};

// Returns the needs of an expression that is not a leaf (a Constant or SizeOf), for the elements
// `wanted` of its result.
Needs needsOf(const ReferenceContext& context, const Expression& expr, const Selection& wanted);

// Evaluates the elements `wanted` of a reshape, and returns them as a dense tensor. `value`
// contains the elements `held` of the operand.
HostTensor reshapedElements(const ReferenceContext& context, const Expression& expr,
                            const HostTensor& value, const Selection& held,
                            const Selection& wanted);

}  // namespace heddle
