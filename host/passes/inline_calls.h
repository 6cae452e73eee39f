#pragma once

#include "host/program/program.h"

namespace heddle::host {

// Replaces every Call instruction by the body of the program that it calls. Run this before all
// other passes of host/passes, because they need to know every access to a buffer.
Program expandCalls(Program program);

}  // namespace heddle::host
