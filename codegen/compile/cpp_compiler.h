#pragma once

#include <memory>
#include <string>

#include "codegen/kernel.h"

namespace heddle::codegen {

// Creates a KernelCompiler that runs the C++ compiler of this machine. The compiler is $HEDDLE_CXX
// if it is set, else the first of c++, g++ and clang++ on PATH that works. If no compiler works,
// returns nullptr and stores the reason in `why`.
std::unique_ptr<KernelCompiler> makeCppCompiler(std::string& why);

}  // namespace heddle::codegen
