#pragma once

#include <utility>
#include <vector>

#include "ir/base/size.h"

namespace heddle {

// Gives values to symbols that are no extent themselves and follow from one in which all else is
// known: of `heads*width` = 96 with heads = 4, width = 24. Sums, differences and products are
// solved, in as many turns as are needed; a symbol that a product does not determine (0, or no
// whole number), or that would be negative, gets none. `extents`: each with its value.
void solveSizes(const std::vector<std::pair<Size, int64_t>>& extents, SizeBindings& known);

}  // namespace heddle
