#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Afterwards every expression but `set` is local: shardings of operands and result agree along its
// axis map. Every `set` is one step of ir/analysis/reshard_step.h; a chain of them is the cheapest
// in bytes (ir/passes/sharding/reshard_path.h). An expression that computes another state than its
// result is to have writes %name_partial or %name_local, and sets lead from there to %name.
//
// Collectives that put an axis together or cut it find it outermost in memory on both sides (an
// all-to-all: the axis that it cuts, in its operand): by a hint where the operand is computed, by a
// copy %name_packed where it is an input, a view or has a required order. Meshes over which data
// moves between two others are added, and what was moved how is told in
// ir/passes/sharding/reshard_moves.h. A reshape of axes that stay spread guards that their blocks
// are whole rows.
//
// UserError for a sharding that no steps lead to, and for a reshape that splits a sharded axis
// unevenly.
Fusion insertResharding(const Fusion& fusion);

}  // namespace heddle
