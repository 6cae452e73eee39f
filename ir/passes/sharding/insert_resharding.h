#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Inserts the data movement that the shardings require. propagateSharding must have run before. A
// fusion without shardings is returned unchanged. Otherwise the result has these properties:
//  - Every expression except `set` is local: each rank computes its block of the result from its
//    blocks of the operands.
//  - Every `set` is one ReshardStep (ir/analysis/reshard_step.h). If a value needs several steps,
//    the pass takes the path that moves the fewest bytes (ir/passes/sharding/reshard_path.h).
//  - If an expression cannot compute its result %name in the wanted sharding, it computes
//    %name_partial or %name_local instead. `set` expressions then move this value to %name.
//  - The axis that a collective joins or splits is the outermost axis in the memory of its operand
//    and of its result. An all-to-all is an exception: only the split axis is outermost, and only
//    in the operand.
//  - To get this memory order, the pass sets the order hint of a computed operand. If the operand
//    is an input or a view, or has another order already, the pass copies it to %name_packed.
//  - A `full` or `iota` that is needed in another sharding is not moved but computed again as
//    %name_again.
//  - If the ranks of a step between two meshes form no mesh of the fusion, the pass adds them as a
//    mesh.
//  - If a reshape regroups axes that stay sharded, a guard checks that the number of devices
//    divides their extents.
//  - An annotation lists the moves (ir/passes/sharding/reshard_moves.h).
//
// Throws UserError in these cases:
//  - No sequence of steps leads to a sharding.
//  - A reshape splits a sharded axis unevenly.
//  - A tensor has no sharding, because propagateSharding was skipped.
Fusion insertResharding(const Fusion& fusion);

}  // namespace heddle
