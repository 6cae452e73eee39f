#pragma once

#include "host/program/program.h"

namespace heddle::host {

// Inserts a Free for every buffer that the program allocates and does not return. Run this after
// all other passes, so that no stream waits only because of a Free.
//   A buffer of the top level is freed on stream 0. The Free follows the last use of the buffer, at
//     the first position at which stream 0 is ordered after all uses.
//   A buffer that the body of a loop or branch allocates is freed in this body, on stream 0.
//
// The pass does not free the following buffers. The author of the program must free them:
//   buffers that a Free of the program already names
//   buffers that a body with its own streams or posts uses
//   buffers that a body allocates and other parts of the program use
Program insertFrees(Program program);

}  // namespace heddle::host
