#pragma once

#include "host/program/program.h"

namespace heddle::host {

// Moves every top-level Communicate up, so that the collective starts as soon as its input is
// ready. If the instruction directly before the Communicate allocates its output, this Allocate
// moves too.
//   Posts keep their order. They do not pass waits, loops or branches. Exception: a Communicate of
//     kind Send may pass the wait for an earlier post that does not conflict with the Send. The
//     stages of a pipeline-parallel program then overlap. Two posts conflict if they access the
//     same memory and at least one of them writes.
//   A post that only some ranks execute (`on @mesh`) moves only if it is of kind Send.
// Run this before coalesceCollectives(), which joins posts that are close together, and before
// insertSync(), which inserts events. A program does not change if it contains events, or if its
// author ordered its streams in a different way (isUnordered() in
// host/passes/analysis/buffer_accesses.h is false).
Program liftPosts(Program program);

}  // namespace heddle::host
