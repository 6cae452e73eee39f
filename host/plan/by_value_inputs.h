#pragma once

#include <vector>

#include "ir/graph/fusion.h"

namespace heddle::host {

// Kernels take a 0-d input in host memory by value, as a scalar argument. These functions rewrite
// segments so that such an input becomes a scalar.

// Returns whether input `position` of a segment may be passed by value: it is a tensor without
// axes, no op reads it at computed indices, and it is not an output of the segment.
bool mayComeByValue(const Fusion& segment, size_t position);

// Returns the segment with some inputs (one flag per input) as scalars. A scalar has the widest
// type of its category, and the segment computes the 0-d tensor from it. Inputs keep their
// positions.
Fusion withValues(const Fusion& segment, const std::vector<bool>& by_value);

// Returns a segment whose only input is a scalar of that type, and whose output is the 0-d tensor.
Fusion valueSegment(DType dtype);

}  // namespace heddle::host
