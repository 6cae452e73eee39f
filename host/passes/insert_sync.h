#pragma once

#include "host/program/program.h"

namespace heddle::host {

// Orders every top-level access after the earlier accesses that conflict with it on other streams,
// if the program does not do so yet. The pass inserts
//   a Wait before the later access, if the earlier access is a posted operation;
//   otherwise a RecordEvent right after the earlier access, and a WaitEvent right before the later
//     one.
// It inserts nothing redundant. Run this after assignStreams() and sinkWaits(). Programs with
// groups, or with posts or events in bodies, do not change.
Program insertSync(Program program);

}  // namespace heddle::host
