#pragma once

#include "host/program/program.h"

namespace heddle::host {

// Inserts missing synchronisation between streams. Two instructions conflict if they access the
// same memory and at least one of them writes. If two top-level instructions conflict and are not
// ordered yet, the pass orders the later one after the earlier one:
//   If the earlier instruction posts an operation, the pass inserts a Wait before the later one.
//     Exception: if another operation has been posted with the same token in the meantime, no Wait
//     can wait for the first one. The pass then inserts nothing, and verify() reports the missing
//     order.
//   If the earlier instruction posts nothing, the pass inserts a RecordEvent after it, and a
//     WaitEvent before the later one.
// A For or If counts as one instruction, with the accesses of its bodies. In the same way, the end
// of the program on stream 0 is ordered after all posted operations, and after all work on other
// streams except Free instructions.
// The work of the caller on the inputs counts as an instruction at the beginning of stream 0. Run
// the pass after assignStreams() and sinkWaits(). A program does not change if its author has
// ordered one of its instructions (Item::opaque in host/passes/analysis/buffer_accesses.h).
Program insertSync(Program program);

}  // namespace heddle::host
