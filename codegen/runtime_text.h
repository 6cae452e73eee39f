#pragma once

#include <string_view>

namespace heddle::codegen {

// The kernel runtime headers, embedded by the build: what generated text calls as `hd::`. Both have
// the same names, so that the text of an op serves CUDA and C++.
extern const std::string_view kRuntimeHeader_cuda_runtime;
extern const std::string_view kRuntimeHeader_cpu_runtime;

}  // namespace heddle::codegen
