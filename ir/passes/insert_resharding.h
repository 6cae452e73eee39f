#pragma once

#include "ir/fusion.h"

namespace heddle {

// Afterwards every expression but `set` is local: shardings of operands and result agree along its
// axis map. Every `set` is one step of ir/set_step.h; a chain of them is the cheapest in bytes
// (ir/passes/reshard_path.h). An expression that computes another state than its result is to have
// writes %name_partial or %name_local, and sets lead from there to %name.
//
// Gathers and reduce-scatters find their axis outermost in memory on both sides: by a hint where
// the operand is computed, by a copy %name_packed where it is an input, a view or has a required
// order. A gather or reduce-scatter of an axis over several mesh axes guards that it divides
// evenly.
//
// UserError for a sharding that no steps lead to.
Fusion insertResharding(const Fusion& fusion);

}  // namespace heddle
