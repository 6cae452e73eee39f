#pragma once

#include "host/program/program.h"

namespace heddle::host {

// No Call is left. First, so that the other passes see every access.
Program expandCalls(Program program);

}  // namespace heddle::host
