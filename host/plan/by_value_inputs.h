#pragma once

#include <vector>

#include "ir/graph/fusion.h"

namespace heddle::host {

// A segment is the part of a fusion from which a kernel is generated. An input of a run may be a
// tensor without axes (0-d) in host memory. If the segment of a kernel allows it, the kernel takes
// the element of this tensor by value, as a scalar argument. The functions in this file check
// whether a segment allows this, and create the segments of such kernels.

// Returns whether input `position` of a segment may be passed by value, that is, if all of these
// are true:
// - The input is a tensor without axes.
// - No op reads it at computed indices.
// - It is not an output of the segment.
bool mayComeByValue(const Fusion& segment, size_t position);

// Returns the segment with some inputs replaced by scalars. `by_value` has one flag per input. Each
// new scalar has the widest type of its category (bool, i64 or f64). The returned segment computes
// the 0-d tensor from the scalar. Inputs keep their positions.
Fusion withValues(const Fusion& segment, const std::vector<bool>& by_value);

// Returns a segment that stores a scalar to a 0-d tensor of type `dtype`. It serves readers that
// need the element in device memory. The scalar is its only input and has the widest type of its
// category.
Fusion scalarStoreSegment(DType dtype);

}  // namespace heddle::host
