#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Gives every tensor a sharding if at least one has one. It never changes what the user wrote.
//  - Forward, results follow their operands.
//  - Backward, values without a sharding follow their readers, except outputs of the fusion.
//  - The remaining inputs are replicated.
//  - Only the user can declare a value partial. Every other partial result is reduced where it is
//    computed.
//
// The pass only decides, and insertResharding moves the data. The two are separate, because a
// decision depends on readers and on operands, before anything is moved. UserError: a sharding has
// a stream split, because noteStreamSplits was skipped.
Fusion propagateSharding(const Fusion& fusion);

}  // namespace heddle
