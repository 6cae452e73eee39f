#pragma once

#include "host/program/program.h"

namespace heddle::host {

// Every top-level Wait stands right before the first instruction that may not run while the posted
// operation is going, and on that instruction's stream; on stream 0 where that one is on fewer
// ranks than the wait, and before the end when there is none. So the work in between overlaps with
// the communication. Leaves alone what liftPosts() leaves alone.
Program sinkWaits(Program program);

}  // namespace heddle::host
