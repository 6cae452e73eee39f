#pragma once

#include "host/program/program.h"

namespace heddle::host {

// Every buffer that a program or a body allocates and does not return is freed on stream 0: after
// its last use, as soon as stream 0 is ordered after all its uses. Last, so that a free makes no
// stream wait that would not have waited anyway. Left to the author: buffers that some Free names,
// those that a body with streams of its own touches, and those that leave the body that allocates
// them.
Program insertFrees(Program program);

}  // namespace heddle::host
