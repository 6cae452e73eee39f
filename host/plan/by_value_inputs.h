#pragma once

#include <vector>

#include "ir/graph/fusion.h"

namespace heddle::host {

// Whether input `position` of a segment may come by value: it has no axes, and no op looks for its
// elements in memory.
bool mayComeByValue(const Fusion& segment, size_t position);

// The segment with these inputs (one flag an input) as scalars of the widest type of their
// category, of which it makes the 0-d tensors itself. Inputs keep their positions.
Fusion withValues(const Fusion& segment, const std::vector<bool>& by_value);

// A segment that makes a 0-d tensor of its only input, such a scalar.
Fusion valueSegment(DType dtype);

}  // namespace heddle::host
