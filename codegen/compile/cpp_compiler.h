#pragma once

#include <memory>
#include <string>

#include "codegen/kernel.h"

namespace heddle::codegen {

// Creates a KernelCompiler that runs the host's C++ compiler ($HEDDLE_CXX, else c++, g++ or clang++
// on PATH). Returns nullptr if none works, with the reason in `why`. A process remembers which
// compiler works, so a compiler must not be replaced while a process runs. Throws UserError if this
// machine prevents a compiler from running, for example because TMPDIR is full, or if the compiler
// does not report its version. $HEDDLE_CXX_TIMEOUT is the time limit of each run of the compiler,
// in seconds (default: 600).
std::unique_ptr<KernelCompiler> makeCppCompiler(std::string& why);

}  // namespace heddle::codegen
