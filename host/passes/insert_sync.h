#pragma once

#include "host/program/program.h"

namespace heddle::host {

// Inserts missing synchronisation between streams. Two accesses conflict if they are to the same
// memory and at least one of them writes. The pass orders every top-level instruction after the
// earlier instructions on other streams that conflict with it:
//   If the earlier instruction posts an operation, the pass inserts a Wait before the later one.
//   Otherwise it inserts a RecordEvent after the earlier instruction, and a WaitEvent before the
//     later one.
// In the same way, the pass orders the end of the program on stream 0 after all work on other
// streams. The pass inserts nothing between two instructions that the program already orders. Run
// the pass after assignStreams() and sinkWaits(). A program does not change if its author has
// ordered one of its instructions (Item::opaque in host/passes/analysis/buffer_accesses.h).
Program insertSync(Program program);

}  // namespace heddle::host
