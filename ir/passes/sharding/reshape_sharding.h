#pragma once

#include <vector>

#include "ir/graph/fusion.h"

namespace heddle {

// Whether an axis that the reshape splits unevenly is gathered rather than refused.
bool gathersUneven(const Expression& reshape);

// A reshape of operand 0 in the state `operand`, where the fusion has propagated shardings: axes
// that it regroups and that stay spread must have blocks of whole rows on both sides, which a guard
// is added for where sizes are not known. UserError for one that splits an axis which the user
// wants sharded (`asked`, of operand 0) and which is known to be uneven, unless he has said where
// the result lies or that it is gathered.
void checkReshapeSharding(const Fusion& fusion, const Expression& reshape, const Sharding& operand,
                          const std::vector<bool>& asked, std::vector<SizeGuard>& guards);

}  // namespace heddle
