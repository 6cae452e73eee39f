#pragma once

#include <vector>

#include "ir/graph/fusion.h"

namespace heddle {

// Returns whether the reshape has gather_uneven=true. With this attribute, heddle gathers a sharded
// axis that the reshape splits unevenly. Without it, checkReshapeSharding() may throw UserError for
// this axis.
bool gathersUneven(const Expression& reshape);

// Checks a reshape that reads operand 0 in the sharding `operand`. propagateSharding must have run
// on the fusion. Requirement: if the reshape splits or merges an axis that `operand` shards, the
// number of devices along this axis must divide its extent. The number must also divide the extent
// of the corresponding axis of the result. Unless this is known to be true for all sizes, the
// function appends a guard to `guards`.
//
// asked[i] says whether the user asked for axis i of operand 0 to be sharded
// (ir/passes/sharding/user_sharded_axes.h). Throws UserError if all of these conditions are true:
//  - The reshape splits an axis that the user asked to be sharded. The sharding of the value splits
//    this axis, but `operand` does not.
//  - The number of devices is known not to divide the extent of this axis or of the corresponding
//    axis of the result.
//  - The user neither wrote a sharding for the result nor set gather_uneven.
void checkReshapeSharding(const Fusion& fusion, const Expression& reshape, const Sharding& operand,
                          const std::vector<bool>& asked, std::vector<SizeGuard>& guards);

}  // namespace heddle
