#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Inserts the data movement that the shardings need. Requires that propagateSharding has run. A
// fusion without shardings stays as it is. Afterwards:
//  - Every expression except `set` is local: each rank computes its block of the result from its
//    blocks of the operands.
//  - Every `set` is one step of ir/analysis/reshard_step.h. Where several steps are necessary, they
//    are the path with the fewest bytes (ir/passes/sharding/reshard_path.h).
//  - If an expression cannot compute its result in the wanted sharding, it writes %name_partial or
//    %name_local, and `set` expressions lead from there to %name.
//  - The axis that a collective joins or splits is outermost in memory, in its operand and in its
//    result. For an all-to-all only the split axis in the operand is. A computed operand gets a
//    hint for this. An operand that is an input or a view, or that has a required order, is copied
//    to %name_packed.
//  - If a step between two meshes needs a team that is no mesh of the fusion, the team is added as
//    a mesh.
//  - If a reshape regroups axes that stay sharded, a guard checks that their blocks consist of
//    complete rows.
//  - An annotation lists the moves (ir/passes/sharding/reshard_moves.h).
//
// UserError: no steps lead to a sharding, or a reshape splits a sharded axis unevenly.
Fusion insertResharding(const Fusion& fusion);

}  // namespace heddle
