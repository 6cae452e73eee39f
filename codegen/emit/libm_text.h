#pragma once

#include <string>

#include "codegen/plan/body.h"

namespace heddle::codegen {

// For generated C++: definitions of the functions of libm that a computation calls, as
// codegen/runtime/cpu_math.h describes them. Guarded, so that kernels may share a file.
std::string libmText(const Computation& computation);

}  // namespace heddle::codegen
