#pragma once

#include "host/program/program.h"

namespace heddle::host {

// Inserts a Free for every buffer that the program allocates and does not return. Run this after
// all other passes. If it ran before insertSync(), that pass would order streams only because of
// the Free instructions.
//   A buffer that is allocated at the top level is freed on stream 0. The Free is at the first
//     position at which stream 0 is ordered after all uses of the buffer.
//   A buffer that the body of a loop or branch allocates is freed in this body, on stream 0.
//
// The pass leaves the following buffers to the author of the program:
//   buffers that a Free of the program already names
//   buffers that the body of a loop or branch uses, if this body contains posts or uses streams
//     other than stream 0
//   buffers that the body of a loop or branch allocates and that are also used outside of this body
Program insertFrees(Program program);

}  // namespace heddle::host
