#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Gives every tensor a sharding if at least one tensor has a sharding. The pass never changes a
// sharding that the user wrote. It works as follows:
//  - First the pass walks forward: a result gets a sharding that fits its operands.
//  - Then the pass walks backward: a value without a sharding gets the sharding that its readers
//    need, if they all need the same one. So does a result that would be partial, although the
//    forward walk has given it a sharding. Outputs of the fusion are excluded. A second forward
//    walk gives these shardings to further results.
//  - Then new tensors (full, iota, and values computed only from them) that still have no sharding
//    get the sharding that their readers need.
//  - Inputs and new tensors that still have no sharding are replicated.
//  - A value is partial only if the user declared it partial. If an expression computes a partial
//    result without such a declaration, the result is reduced right after this expression.
//
// This pass only chooses shardings; insertResharding inserts the data movement later. The two are
// separate passes, because only operands and readers may decide a sharding. Moves that are already
// inserted must not affect the choice. Throws UserError if a sharding has a stream split, which
// happens if noteStreamSplits was skipped.
Fusion propagateSharding(Fusion fusion);

}  // namespace heddle
