#pragma once

#include <string>

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
// which chooses the shardings that the user has not stated. The result keeps the name of the
// output, and its operand gets the suffix `_local`. If the operand is an input or another output,
// it keeps its name, and the result is called %output_in_input.
Fusion moveReusedOutputs(const Fusion& fusion);

// Returns the end of an error about the sharding of a value: which input the output is stored in,
// and the sharding of the input. Returns "" if the value is no such output.
std::string reuseOf(const Fusion& fusion, ValueId output);

}  // namespace heddle
