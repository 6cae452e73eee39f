#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Gives every tensor a sharding if at least one tensor has one. It never changes a sharding that
// the user wrote.
//  - First it walks forward: a result gets a sharding that fits its operands.
//  - Then it walks backward: a value that has no sharding yet gets one that fits its readers.
//    Outputs of the fusion do not.
//  - Inputs that still have no sharding are replicated.
//  - Only the user can declare a value partial. Every other partial result is reduced where it is
//    computed.
//
// This pass only chooses shardings; insertResharding inserts the data movement later. The passes
// are separate, because a choice depends on both operands and readers, and must not see inserted
// moves. UserError if a sharding has a stream split. This happens if noteStreamSplits was skipped.
Fusion propagateSharding(const Fusion& fusion);

}  // namespace heddle
