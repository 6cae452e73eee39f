#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "host/device/cuda/kernel/lazy_kernel.h"

namespace heddle::host {

// Copies the elements of a strided array to another strided array with the same sizes, in the
// memory of one device. Thread-safe.
class StridedCopy {
 public:
  static constexpr size_t kMostAxes = 8;

  StridedCopy();
  // Enqueues a copy. Strides are in elements; `element_bytes` is 1, 2, 4 or 8. Throws UserError if
  // there are more than kMostAxes axes. The current CUDA device must be the device for which
  // `compiler` compiles.
  void run(const codegen::KernelCompiler& compiler, void* dst,
           const std::vector<int64_t>& dst_strides, const void* src,
           const std::vector<int64_t>& src_strides, const std::vector<int64_t>& sizes,
           int64_t element_bytes, cudaStream_t stream);

 private:
  LazyKernel kernel_;
};

}  // namespace heddle::host
