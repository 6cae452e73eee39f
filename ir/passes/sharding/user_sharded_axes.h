#pragma once

#include <vector>

#include "ir/graph/fusion.h"

namespace heddle {

// Returns, for each value and logical axis, whether the user asked for this axis to be sharded. An
// entry is true in each of these two cases:
//  - The user wrote a sharding of the value that splits the axis.
//  - The user wrote no sharding of the value, but asked for the corresponding axis of an operand to
//    be sharded. In addition, the expression can be split along this axis
//    (ir/analysis/shardable_axes.h).
// An axis may also be sharded only because the readers of the value are sharded. The user did not
// ask for this sharding, so it must not add conditions on sizes. Only the rules for reshapes use
// this information. If the fusion has no reshape, the list of each value is therefore empty.
IdVector<ValueId, std::vector<bool>> userShardedAxes(const Fusion& fusion);

// Returns, for each value and logical axis, whether propagateSharding may shard this axis. Call
// this before propagateSharding. An axis may be sharded if one of these is true:
//  - The sharding of the value splits the axis.
//  - The value has no sharding, and an expression that can be split along the axis connects the
//    axis with an axis that may be sharded. An expression connects axes of its operands and its
//    result. An output that is stored in an input (`return %y in %x`) is connected with this input
//    in the same way.
// If no value has a sharding, the list of each value is empty.
IdVector<ValueId, std::vector<bool>> axesThatMayBeSharded(const Fusion& fusion);

}  // namespace heddle
