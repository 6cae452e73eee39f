#pragma once

#include <string>

#include "codegen/plan/body.h"

namespace heddle::codegen {

// Returns C++ definitions of the libm functions that a computation calls (see
// codegen/runtime/cpu_math.h). Each definition has an #ifndef guard, so the texts of several
// kernels can be concatenated.
std::string libmText(const Computation& computation);

}  // namespace heddle::codegen
