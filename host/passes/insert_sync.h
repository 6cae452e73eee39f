#pragma once

#include "host/program/program.h"

namespace heddle::host {

// Inserts every order between streams that the top-level accesses need and that is still missing:
//   a Wait where a posted operation must have completed;
//   otherwise a RecordEvent right after the earlier access and a WaitEvent right before the later.
// None of them is redundant. Run this after assignStreams() and sinkWaits(). Programs with groups,
// or with posts or events in bodies, do not change.
Program insertSync(Program program);

}  // namespace heddle::host
