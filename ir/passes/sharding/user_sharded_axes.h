#pragma once

#include <vector>

#include "ir/graph/fusion.h"

namespace heddle {

// Returns, for each value and logical axis, whether the user asked for this axis to be sharded. The
// user asked for it if the user wrote the sharding of the value, or if the value inherits the
// sharding of the axis from its operands. An axis may also be sharded because its readers are. The
// user did not ask for that sharding, so it must not add conditions on sizes. Only the passes that
// treat reshapes use the result: if the fusion has no reshape, all lists are empty.
IdVector<ValueId, std::vector<bool>> userShardedAxes(const Fusion& fusion);

}  // namespace heddle
