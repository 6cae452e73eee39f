#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Afterwards, if any value of the fusion has a sharding, every tensor has one. What the user wrote
// stays. Forward, results follow their operands; backward, values without a sharding follow what
// their readers want; inputs that nothing decides are replicated. No value becomes partial unless
// the user says so: a partial result is resolved where it is made.
//
// Here, apart from insertResharding, because a decision looks at readers and operands alike, and
// nothing has been moved yet. UserError for stream splits.
Fusion propagateSharding(const Fusion& fusion);

}  // namespace heddle
