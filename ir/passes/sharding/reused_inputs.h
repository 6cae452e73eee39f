#pragma once

#include <string>

#include "ir/graph/fusion.h"

namespace heddle {

// Two passes for reusing outputs: outputs that are stored in the memory of an input, as in `return
// %w1 in %w`. A reusing output must have the sharding of its input.

// Gives each reusing output the sharding of its input, if the user has sharded the input and not
// the output. Exceptions: the output is an input itself, or the sharding splits a broadcast axis of
// the output. The pass runs before propagateSharding, so that a reduction across devices can
// directly give the wanted sharding.
Fusion shardReusedOutputs(Fusion fusion);

// Moves each reusing output to the sharding of its input, if the two shardings differ. The pass
// appends a `set` expression with the sharding of the input, and the fusion returns the result of
// the `set` instead. If this sharding splits a broadcast axis of the output, the pass inserts a
// reshape before the `set`, because a broadcast axis cannot be sharded. The pass runs after
// propagateSharding, which chooses the shardings that the user has not stated. The result of the
// `set` gets the name of the output, and the old output gets the suffix `_local`. If the old output
// is an input, or is returned more than once, it keeps its name, and the result is called
// %output_in_input.
Fusion moveReusedOutputs(Fusion fusion);

// Returns the end of an error message about the sharding of a reusing output. The text names the
// input and states the sharding of the input. Returns "" for every other value, and if the input
// has no sharding.
std::string reuseOf(const Fusion& fusion, ValueId output);

}  // namespace heddle
