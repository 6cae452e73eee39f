#pragma once

#include <memory>
#include <string>

#include "codegen/kernel.h"

namespace heddle::codegen {

// Creates a compiler that uses NVRTC to compile sources to cubins for `arch`, for example "sm_90".
// The machine needs no GPU and no driver. Throws UserError if NVRTC does not report its
// version, or if `arch` contains no number.
std::unique_ptr<KernelCompiler> makeNvrtcCompiler(const std::string& arch);

// Does the same as makeNvrtcCompiler(), for callers that load libheddle_cuda.so by dlopen(). The
// caller owns the result. Returns nullptr instead of throwing UserError.
extern "C" KernelCompiler* heddleMakeNvrtcCompiler(const char* arch);

}  // namespace heddle::codegen
