#pragma once

#include <string>
#include <string_view>

#include "codegen/kernel.h"

namespace heddle::codegen {

// The kernel runtime headers, embedded by the build: what generated text calls as `hd::`. Those of
// both targets have the same names, so that the text of an op serves CUDA and C++.
extern const std::string_view kRuntimeHeader_cuda_runtime;
extern const std::string_view kRuntimeHeader_cuda_math;
extern const std::string_view kRuntimeHeader_cpu_runtime;
extern const std::string_view kRuntimeHeader_cpu_vector_math;
extern const std::string_view kRuntimeHeader_cpu_math;

// The kernels of heddle's own library functions and products, for a CUDA compiler as they are
// behind the text of cuda_elements; cuda_library also behind those that stand between.
extern const std::string_view kRuntimeHeader_cuda_elements;
extern const std::string_view kRuntimeHeader_cuda_lines;
extern const std::string_view kRuntimeHeader_cuda_keys;
extern const std::string_view kRuntimeHeader_cuda_sort;
extern const std::string_view kRuntimeHeader_cuda_select;
extern const std::string_view kRuntimeHeader_cuda_library;
extern const std::string_view kRuntimeHeader_cuda_product;

// All that stands before the text of a kernel: types and memory, then the functions of the ops.
inline std::string runtimeHeader(Target target) {
  const bool cuda = target == Target::Cuda;
  std::string text(cuda ? kRuntimeHeader_cuda_runtime : kRuntimeHeader_cpu_runtime);
  if (!cuda) text += kRuntimeHeader_cpu_vector_math;
  text += cuda ? kRuntimeHeader_cuda_math : kRuntimeHeader_cpu_math;
  return text;
}

}  // namespace heddle::codegen
