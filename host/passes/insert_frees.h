#pragma once

#include "host/program/program.h"

namespace heddle::host {

// Inserts a Free for every buffer that a program or a body (of a loop or branch) allocates and does
// not return. The Free is on stream 0. It is at the first position after the last use at which
// stream 0 is ordered after all uses. Run this after all other passes, so that no stream waits only
// because of a Free.
// The pass does not free the following buffers. The author of the program must free them:
//   buffers that a Free of the program already names,
//   buffers that a body with its own streams or posts uses, and
//   buffers that leave the body that allocates them.
Program insertFrees(Program program);

}  // namespace heddle::host
