#pragma once

#include "host/program/program.h"

namespace heddle::host {

// Replaces every Call by the body of its callee. Run this before all other passes, so that they see
// every access to a buffer.
Program expandCalls(Program program);

}  // namespace heddle::host
