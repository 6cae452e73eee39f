#pragma once

#include "host/program/program.h"

namespace heddle::host {

// Moves every top-level Wait down, so that more work overlaps with the communication. The new
// position is right before the first instruction that must not run during the posted operation. The
// wait is then on the stream of that instruction.
//   If that instruction runs on fewer ranks than the wait, or only on the host, the wait is
//     on stream 0.
//   If no instruction conflicts, the wait is at the end of the program, on stream 0.
// Programs with events, groups, or posts in bodies do not change, because their author ordered
// them.
Program sinkWaits(Program program);

}  // namespace heddle::host
