#pragma once

#include "host/program/program.h"

namespace heddle::host {

// Replaces every Call by the body of its callee. Run this first, so that the other passes see every
// access.
Program expandCalls(Program program);

}  // namespace heddle::host
