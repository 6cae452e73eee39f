#pragma once

#include <vector>

#include "ir/graph/fusion.h"

namespace heddle {

// Returns whether the reshape has gather_uneven=true. If it has, a sharded axis that the reshape
// splits unevenly is gathered. If not, such an axis is an error.
bool gathersUneven(const Expression& reshape);

// Checks a reshape whose operand 0 has the sharding `operand`. propagateSharding must have run on
// the fusion. If the reshape regroups axes that stay sharded, operand and result must have even
// blocks. If this depends on symbols, the function appends a guard to `guards`.
//
// asked[i] says whether the user asked for axis i of operand 0 to be sharded. UserError if the
// reshape splits such an axis unevenly, unless the user wrote a sharding for the result or set
// gather_uneven.
void checkReshapeSharding(const Fusion& fusion, const Expression& reshape, const Sharding& operand,
                          const std::vector<bool>& asked, std::vector<SizeGuard>& guards);

}  // namespace heddle
