#pragma once

#include <vector>

#include "ir/graph/fusion.h"

namespace heddle {

// Returns whether the reshape has gather_uneven=true. An axis that it splits unevenly is then
// gathered; otherwise it is an error.
bool gathersUneven(const Expression& reshape);

// Checks a reshape whose operand 0 has the sharding `operand`. The fusion must have propagated
// shardings. Axes that the reshape regroups and that stay sharded must have even blocks on both
// sides; where this depends on symbols, a guard is added.
//
// UserError: the reshape splits an axis unevenly that the user asked to be sharded (`asked`, per
// axis of operand 0). It is no error if the user wrote a sharding for the result, or with
// gather_uneven.
void checkReshapeSharding(const Fusion& fusion, const Expression& reshape, const Sharding& operand,
                          const std::vector<bool>& asked, std::vector<SizeGuard>& guards);

}  // namespace heddle
