#pragma once

#include "host/program/program.h"

namespace heddle::host {

// Moves every top-level Wait down, so that more work overlaps with the communication. The new
// position is right before the first instruction that conflicts with the posted operation. An
// instruction conflicts if it accesses the same memory as the operation and at least one of them
// writes.
//   A wait does not move past an instruction that posts its token again or waits for its token
//     again. It does not move at all if no earlier instruction posts its token.
//   The wait uses the stream of the instruction that now follows it. If this instruction has no
//     stream, or if it does not run on all ranks that execute the wait, the wait uses stream 0.
//   If nothing stops the wait, it is at the end of the program, on stream 0.
// The pass changes only programs for which isUnordered() (host/passes/analysis/buffer_accesses.h)
// is true. In all other programs, the author has ordered the streams.
Program sinkWaits(Program program);

}  // namespace heddle::host
