#pragma once

#include <string>

#include "codegen/plan/body.h"

namespace heddle::codegen {

// Returns C++ definitions of the libm functions that a computation calls, in the form that
// codegen/runtime/cpu_math.h describes. Guards around each definition let several kernels share a
// file.
std::string libmText(const Computation& computation);

}  // namespace heddle::codegen
