#pragma once

#include <utility>
#include <vector>

#include "ir/base/size.h"

namespace heddle {

// Computes values of symbols from the values of extents that contain them, and adds these values to
// `known`. For example, the extent `heads*width` with the value 96, and heads = 4, give width = 24.
// `extents` lists the extents with their values.
//
// The function solves sums, differences and products that contain exactly one unknown symbol. It
// repeats this until no further symbol gets a value. A symbol gets no value in these cases:
//  - It occurs more than once in the extent.
//  - It is a factor of a product, and the other factor is 0 or negative.
//  - The value would be negative, not an integer, or too large for 64 bits.
//  - It is `rank`, `ranks` or a symbol of a mesh (`@m.x`). The job defines these symbols.
//  - It is the value of an input (`%n`).
void solveSizes(const std::vector<std::pair<Size, int64_t>>& extents, SizeBindings& known);

}  // namespace heddle
