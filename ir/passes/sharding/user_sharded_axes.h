#pragma once

#include <vector>

#include "ir/graph/fusion.h"

namespace heddle {

// Returns, per value and logical axis, whether the user asked for it to be sharded: the user wrote
// the sharding, or the axis inherits it in forward direction. Other axes may be sharded because
// their readers are. The user did not ask for that, so it must not add conditions on sizes. Only
// reshapes use this result: if the fusion has none, all lists are empty.
IdVector<ValueId, std::vector<bool>> userShardedAxes(const Fusion& fusion);

}  // namespace heddle
