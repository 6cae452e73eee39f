#pragma once

#include "ir/reference/elements.h"

namespace heddle {

// Evaluates an expression of the kind OpKind::Reduction. `value` is the operand. `out` must have
// the sizes and the dtype of the result; the function fills it and returns it.
//  - Integers are combined in int64.
//  - Floats are combined in double. Sums are compensated (A. Neumaier, 1974), so that their error
//    hardly grows with the number of elements.
//  - An element of the result does not depend on the number of threads, nor on which other elements
//    of the result are computed.
HostTensor reduceElements(const ReferenceContext& context, const Expression& expr,
                          const HostTensor& value, HostTensor out);

}  // namespace heddle
