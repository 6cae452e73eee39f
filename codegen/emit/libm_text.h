#pragma once

#include <string>

#include "codegen/plan/body.h"

namespace heddle::codegen {

// Returns C++ definitions of the libm functions that a computation calls, in the form that
// codegen/runtime/cpu_math.h describes. Each definition has an #ifndef guard, so several kernels
// can share a file.
std::string libmText(const Computation& computation);

}  // namespace heddle::codegen
