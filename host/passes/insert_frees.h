#pragma once

#include "host/program/program.h"

namespace heddle::host {

// Frees every buffer that a program or a body allocates and does not return. The Free is on stream
// 0 after the last use, as soon as stream 0 is ordered after all uses. Run this last, so that no
// stream waits only for a free.
// The author must free
//   buffers that some Free already names,
//   buffers that a body with its own streams or posts uses, and
//   buffers that leave the body that allocates them.
Program insertFrees(Program program);

}  // namespace heddle::host
