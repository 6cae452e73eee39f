#pragma once

#include "host/program/program.h"

namespace heddle::host {

// Moves every top-level Communicate up, so that the collective starts as soon as its input is
// ready. If the instruction directly before the Communicate allocates its only output, this
// Allocate moves too.
//   A Communicate does not move past an instruction that defines one of its slots, nor past one
//     that accesses the same memory if one of the two writes. In particular, it stays after the
//     instruction that computes its input.
//   A Communicate does not move past another post, a wait, a loop or a branch. Exception: a
//     Communicate of kind Send moves past the wait for an earlier post, unless the two posts access
//     the same memory and one of them writes. The stages of a pipeline-parallel program overlap
//     only with this exception.
//   A Communicate that only some ranks execute (`on @mesh`) moves only if it is of kind Send.
// Run this before coalesceCollectives(), which joins posts that are close together, and before
// insertSync(). A program does not change if it contains events, or if its author ordered its
// streams in a different way (isUnordered() in host/passes/analysis/buffer_accesses.h is false).
Program liftPosts(Program program);

}  // namespace heddle::host
