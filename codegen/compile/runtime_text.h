#pragma once

#include <string>
#include <string_view>

#include "codegen/kernel.h"

namespace heddle::codegen {

// The runtime headers of kernels (codegen/runtime), which the build embeds as text. They define the
// functions in namespace `hd` that generated kernels call. The headers for CUDA and for C++ define
// functions with the same names, so the text of an op is the same for both targets.
extern const std::string_view kRuntimeHeader_cuda_device;
extern const std::string_view kRuntimeHeader_cuda_runtime;
extern const std::string_view kRuntimeHeader_cuda_lanes;
extern const std::string_view kRuntimeHeader_cuda_memory;
extern const std::string_view kRuntimeHeader_cuda_math;
extern const std::string_view kRuntimeHeader_cuda_joint;
extern const std::string_view kRuntimeHeader_cpu_runtime;
extern const std::string_view kRuntimeHeader_cpu_transpose;
extern const std::string_view kRuntimeHeader_cpu_vector_math;
extern const std::string_view kRuntimeHeader_cpu_math;

// The kernels of heddle's own library functions (such as cumsum and argsort) and matrix products,
// as CUDA text. A source for matrix products consists of cuda_elements and cuda_product. A source
// for library functions consists of cuda_elements, cuda_lines, cuda_keys, cuda_sort, cuda_select
// and cuda_library, in this order.
extern const std::string_view kRuntimeHeader_cuda_elements;
extern const std::string_view kRuntimeHeader_cuda_lines;
extern const std::string_view kRuntimeHeader_cuda_keys;
extern const std::string_view kRuntimeHeader_cuda_sort;
extern const std::string_view kRuntimeHeader_cuda_select;
extern const std::string_view kRuntimeHeader_cuda_library;
extern const std::string_view kRuntimeHeader_cuda_product;

// Returns the text that must precede the text of a generated kernel. It contains, in this order:
// - Cuda: the functions that need the device; types, and accesses to single elements; types of
//   vectors; accesses to vectors; the functions of the ops; the joint reductions
//   (codegen/plan/joint.h).
// - Cpp: types and memory accesses; math functions that the compiler can vectorize; transposes; the
//   functions of the ops.
inline std::string runtimeHeader(Target target) {
  const bool cuda = target == Target::Cuda;
  std::string text(cuda ? kRuntimeHeader_cuda_device : kRuntimeHeader_cpu_runtime);
  text += cuda ? kRuntimeHeader_cuda_runtime : kRuntimeHeader_cpu_vector_math;
  if (cuda) text += kRuntimeHeader_cuda_lanes;
  text += cuda ? kRuntimeHeader_cuda_memory : kRuntimeHeader_cpu_transpose;
  text += cuda ? kRuntimeHeader_cuda_math : kRuntimeHeader_cpu_math;
  if (cuda) text += kRuntimeHeader_cuda_joint;
  return text;
}

}  // namespace heddle::codegen
