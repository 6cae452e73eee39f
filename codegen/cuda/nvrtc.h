#pragma once

#include <memory>
#include <string>

#include "codegen/kernel.h"

namespace heddle::codegen {

// NVRTC for `arch` such as "sm_90": source to cubin. Needs no GPU and no driver.
std::unique_ptr<KernelCompiler> makeNvrtcCompiler(const std::string& arch);

// The same under a plain name, for those who load libheddle_cuda.so with dlopen. The caller owns
// the result; nullptr when NVRTC cannot start.
extern "C" KernelCompiler* heddleMakeNvrtcCompiler(const char* arch);

}  // namespace heddle::codegen
