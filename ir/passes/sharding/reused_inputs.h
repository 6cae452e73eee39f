#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Two passes for outputs that are stored in the memory of an input, as in `return %w1 in %w`. Such
// an output must have the sharding of the input.

// If the user has sharded the input, and not the output, the output gets the sharding of the input.
// The pass runs before propagateSharding, so that a sum over devices leads directly to the wanted
// sharding.
Fusion shardReusedOutputs(const Fusion& fusion);

// If the output has a different sharding than the input, the pass appends a `set` expression with
// the sharding of the input, and returns its result instead. The pass runs after propagateSharding,
// which chooses the shardings that the user has not stated.
Fusion moveReusedOutputs(const Fusion& fusion);

}  // namespace heddle
