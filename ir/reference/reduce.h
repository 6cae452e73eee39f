#pragma once

#include "ir/reference/elements.h"

namespace heddle {

// Evaluates a Reduction. `out` has the sizes and the dtype of the result.
// - Integers are combined in int64.
// - Floats are combined in double. Sums are compensated (A. Neumaier, 1974), so their error does
// not
//   grow with the number of elements.
// - The result depends neither on the number of threads nor on which other elements are computed.
HostTensor reduceElements(const ReferenceContext& context, const Expression& expr,
                          const HostTensor& value, HostTensor out);

}  // namespace heddle
