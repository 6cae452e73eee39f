#pragma once

#include "host/program/program.h"

namespace heddle::host {

// Inserts a Free for every buffer that the program allocates and does not return. Run this after
// all other passes, so that no stream waits only because of a Free.
//   A buffer that is allocated at the top level is freed on stream 0. The Free follows the last use
//     of the buffer, at the first position at which stream 0 is ordered after all uses.
//   A buffer that the body of a loop or branch allocates is freed in this body, on stream 0.
//
// The pass leaves the following buffers to the author of the program:
//   buffers that a Free of the program already names
//   buffers that a body uses, if this body contains posts or streams other than stream 0
//   buffers that a body allocates and that are also used outside of this body
Program insertFrees(Program program);

}  // namespace heddle::host
