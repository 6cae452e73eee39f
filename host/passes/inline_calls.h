#pragma once

#include "host/program/program.h"

namespace heddle::host {

// Replaces every Call by the body of the called program. Run this before all other passes, because
// they need to know every access to a buffer.
Program expandCalls(Program program);

}  // namespace heddle::host
