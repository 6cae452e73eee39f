#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <array>
#include <map>
#include <memory>
#include <mutex>

#include "host/cuda/strided_copy.h"
#include "host/matmul_shape.h"

namespace heddle::host {

// Matrix products of one device through cuBLASLt: f32 in full f32 (no TF32), f64, and bf16 that
// accumulates in f32. Operands with strides that cuBLASLt cannot read are packed into scratch
// memory of the stream. The first algorithm of cuBLASLt's heuristic is taken and kept for each
// shape. Thread-safe; the device is current in every call.
class CudaMatmul {
 public:
  CudaMatmul();
  ~CudaMatmul();
  CudaMatmul(const CudaMatmul&) = delete;
  CudaMatmul& operator=(const CudaMatmul&) = delete;

  // UserError for i64 and bool, and for a shape for which cuBLASLt has no algorithm.
  void run(const MatmulShape& shape, const void* a, const void* b, void* c,
           const codegen::KernelCompiler& compiler, cudaStream_t stream);

 private:
  // Everything on which cuBLASLt's choice depends: dtype, sizes, layouts, alignments.
  using Key = std::array<int64_t, 16>;
  struct Plan;

  void runDense(const MatmulShape& shape, const void* a, const void* b, void* c,
                cudaStream_t stream);
  const Plan& planFor(const Key& key);
  std::unique_ptr<Plan> makePlan(const Key& key);

  cublasLtHandle_t handle_ = nullptr;
  StridedCopy copy_;
  std::mutex mutex_;
  std::map<Key, std::unique_ptr<Plan>> plans_;
};

}  // namespace heddle::host
