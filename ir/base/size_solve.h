#pragma once

#include <utility>
#include <vector>

#include "ir/base/size.h"

namespace heddle {

// Computes the values of symbols that occur only inside larger extents, and adds them to `known`.
// For example `heads*width` = 96 and heads = 4 give width = 24. `extents` is a list of extents and
// their values.
//
// It solves sums, differences and products that contain one unknown symbol. It repeats this until
// no further symbol gets a value. A symbol gets no value in these cases:
//  - Its factor is 0 or negative, or the result would not be an integer.
//  - The result would be negative.
//  - It is `rank`, `ranks` or the symbol of a mesh: the job defines these.
void solveSizes(const std::vector<std::pair<Size, int64_t>>& extents, SizeBindings& known);

}  // namespace heddle
