#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Inserts the data movement that the shardings require. propagateSharding must have run before. A
// fusion without shardings is returned unchanged. Otherwise the result has these properties:
//  - Every expression except `set` is local: each rank computes its block of the result from its
//    blocks of the operands.
//  - Every `set` is one ReshardStep (ir/analysis/reshard_step.h). If a change of sharding needs
//    several steps, the pass inserts one `set` per step, and takes the path that moves the fewest
//    bytes (ir/passes/sharding/reshard_path.h).
//  - If an expression cannot compute its result %name in the wanted sharding, it computes
//    %name_partial or %name_local instead. `set` expressions then move this value to %name.
//  - If a collective joins or splits an axis, this axis is outermost in the memory of operand and
//    result. Exception: an all-to-all joins one axis and splits a second axis. It only requires the
//    split axis to be outermost in the operand.
//  - If an operand does not have this memory order and a kernel or library computes it, the pass
//    sets its Layout::needed. If the operand is an input, a view or the result of a collective, or
//    if its order is already fixed, the pass copies it to %name_packed instead. It also copies an
//    operand whose memory cannot be padded as the collective needs it.
//  - If an expression other than a `set` needs the result of a `full` or `iota` in a second
//    sharding, the pass does not move the result. Each rank computes its new block as %name_again.
//  - If the ranks of a step between two meshes form no mesh of the fusion, the pass adds them as a
//    mesh.
//  - A reshape may split or merge an axis that stays sharded. The number of devices along this axis
//    must then divide the extents before and after the reshape. If the sizes leave this open, a
//    guard (SizeGuard) checks it in every run.
//  - An annotation lists the moves (ir/passes/sharding/reshard_moves.h).
//
// Throws UserError in these cases:
//  - No sequence of steps leads to a sharding that an expression needs.
//  - A reshape splits a sharded axis unevenly, and checkReshapeSharding()
//    (ir/passes/sharding/reshape_sharding.h) does not allow it.
//  - A tensor has no sharding, because propagateSharding was skipped.
Fusion insertResharding(Fusion fusion);

}  // namespace heddle
