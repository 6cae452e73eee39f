#pragma once

#include <string>
#include <vector>

#include "codegen/plan/body.h"

namespace heddle::codegen {

// Returns C++ definitions of the functions such as hd_sinf that the bodies call in place of libm
// functions (codegen/runtime/cpu_math.h explains why). Each definition is guarded by a macro, so
// the texts of several kernels can be concatenated.
std::string libmText(const std::vector<const Body*>& bodies);

}  // namespace heddle::codegen
