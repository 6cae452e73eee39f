#pragma once

#include "host/program/program.h"

namespace heddle::host {

// Moves every top-level Wait down, so that the work before it overlaps with the communication. The
// wait is then right before the first instruction that may not run during the posted operation, on
// the stream of that instruction.
//   If that instruction runs on fewer ranks than the wait, or only on the host, the wait is
//     on stream 0.
//   If there is no such instruction, the wait is at the end of the program, on stream 0.
// Programs that liftPosts() leaves unchanged do not change.
Program sinkWaits(Program program);

}  // namespace heddle::host
