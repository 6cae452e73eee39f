#pragma once

#include <string>
#include <vector>

#include "codegen/plan/body.h"

namespace heddle::codegen {

// Returns C++ definitions of the libm functions that the bodies call (see
// codegen/runtime/cpu_math.h). Each definition has an #ifndef guard, so the texts of several
// kernels can be concatenated.
std::string libmText(const std::vector<const Body*>& bodies);

}  // namespace heddle::codegen
