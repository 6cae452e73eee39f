#pragma once

#include <vector>

#include "ir/reference/elements.h"
#include "ir/reference/selection.h"

namespace heddle {

// What one expression must compute and read so that some elements of its result are known.
struct Needs {
  // The elements of the result that the expression computes. They contain the wanted ones. An op
  // that works along a whole axis, such as a scan, computes this axis as a whole.
  Selection computed;
  // The elements of each operand that this takes. A scalar operand has no axes.
  std::vector<Selection> operands;
};

// Returns the needs of an expression that is not a leaf (a Constant or SizeOf), for the elements
// `wanted` of its result.
Needs needsOf(const ReferenceContext& context, const Expression& expr, const Selection& wanted);

// Returns a dense tensor with the elements `wanted` of the result of a reshape. `value` holds the
// elements `held` of its operand.
HostTensor reshapedElements(const ReferenceContext& context, const Expression& expr,
                            const HostTensor& value, const Selection& held,
                            const Selection& wanted);

}  // namespace heddle
