#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Inserts the data movement that the shardings require. propagateSharding must have run before. A
// fusion without shardings is returned unchanged. Otherwise the result has these properties:
//  - Every expression except `set` is local: each rank computes its block of the result from its
//    blocks of the operands.
//  - Every `set` is one ReshardStep (ir/analysis/reshard_step.h). If a value needs several steps,
//    they are the path that moves the fewest bytes (ir/passes/sharding/reshard_path.h).
//  - If an expression cannot compute its result %name in the wanted sharding, it computes
//    %name_partial or %name_local instead. `set` expressions then move this value to %name.
//  - The axis that a collective joins or splits is the outermost axis in the memory of its operand
//    and of its result. For an all-to-all, this holds only for the split axis in the operand.
//  - For this memory order, a computed operand gets an order hint. An operand that is an input or a
//    view, or that has a required order, is copied to %name_packed.
//  - If a step between two meshes needs a team that is not a mesh of the fusion, the team is added
//    to the meshes.
//  - If a reshape regroups axes that stay sharded, a guard checks that their blocks consist of
//    complete rows.
//  - An annotation lists the moves (ir/passes/sharding/reshard_moves.h).
//
// UserError if no sequence of steps leads to a sharding, or if a reshape splits a sharded axis
// unevenly.
Fusion insertResharding(const Fusion& fusion);

}  // namespace heddle
