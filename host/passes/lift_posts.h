#pragma once

#include "host/program/program.h"

namespace heddle::host {

// Moves every top-level Communicate up, so that the collective starts as soon as its input is
// ready. If the instruction directly before it allocates its output, this Allocate moves too.
//   Posts keep their order. They do not pass waits, loops and branches. Exception: a Communicate of
//     kind Send may pass the wait for a post that shares no buffer with the Send. The stages of a
//     pipeline-parallel program then overlap.
//   A post that only some ranks execute (`on @mesh`) moves only if it is of kind Send.
// Run this before assignStreams(), so that the event for which a post waits is recorded at an early
// position. insertSync() inserts this event. A program does not change if its author ordered its
// streams (isUnordered() in host/passes/analysis/buffer_accesses.h is false).
Program liftPosts(Program program);

}  // namespace heddle::host
