#pragma once

#include <vector>

#include "ir/fusion.h"

namespace heddle {

// A reshape of operand 0 in the state `operand`, where the fusion has propagated shardings: axes
// that it regroups and that stay spread must have blocks of whole rows on both sides, which a guard
// is added for where sizes are not known. UserError for one that splits a sharded axis which is
// known to be uneven, unless the user has said where the result lies: then the axis is gathered.
void checkRegrouped(const Fusion& fusion, const Expression& reshape, const Sharding& operand,
                    std::vector<SizeGuard>& guards);

}  // namespace heddle
