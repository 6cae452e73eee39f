#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "codegen/kernel.h"
#include "host/device/cuda/kernel/cuda_kernel.h"
#include "host/device/fallback_matmul.h"

namespace heddle::host {

// Compiles and holds heddle's own kernels for matrix products (codegen/runtime/cuda_product.h). All
// kernels are compiled together at the first call of get(). Thread-safe.
class FallbackMatmulKernels {
 public:
  // Returns the kernel `which`. The current CUDA device must be the device for which `compiler`
  // compiles. The first call decides which compiler is used.
  CudaKernel& get(ProductKernel which, const codegen::KernelCompiler& compiler);

 private:
  std::mutex mutex_;
  std::vector<std::byte> image_;
  std::array<std::unique_ptr<CudaKernel>, std::size(kProductEntries)> kernels_;
};

// A matrix product that one of heddle's own kernels computes or completes.
// - `part` is nullptr: the kernel computes the full matrix product.
// - Otherwise cuBLASLt first computes `part`. The kernel then applies the bias and the activation
//   that `part` lacks.
// - `adds_bias`: true: the kernel, not cuBLASLt, adds the bias.
// - The kernel must outlive this object.
class PreparedFallbackMatmul : public PreparedMatmul {
 public:
  PreparedFallbackMatmul(int device, CudaKernel& kernel, ProductLaunch launch, bool adds_bias,
                         std::shared_ptr<const PreparedMatmul> part = nullptr)
      : device_(device),
        kernel_(kernel),
        launch_(std::move(launch)),
        adds_bias_(adds_bias),
        part_(std::move(part)) {}

  int64_t workspaceBytes() const override { return part_ ? part_->workspaceBytes() : 0; }
  void run(const MatmulOperands& operands, Stream stream, const Issue& issue) const override;

 private:
  int device_;
  CudaKernel& kernel_;
  ProductLaunch launch_;
  bool adds_bias_;
  std::shared_ptr<const PreparedMatmul> part_;
};

// An f8 matrix product. If the addresses of a, b, c and the bias in a run have 16-byte alignment,
// `library` (cuBLASLt, perhaps completed by one of heddle's own kernels) computes the matrix
// product. Otherwise `own` (only heddle's own kernel) computes it.
class PreparedFloat8 : public PreparedMatmul {
 public:
  PreparedFloat8(std::shared_ptr<const PreparedMatmul> library,
                 std::shared_ptr<const PreparedMatmul> own)
      : library_(std::move(library)), own_(std::move(own)) {}

  int64_t workspaceBytes() const override { return library_->workspaceBytes(); }
  void run(const MatmulOperands& operands, Stream stream, const Issue& issue) const override;

 private:
  std::shared_ptr<const PreparedMatmul> library_;
  std::shared_ptr<const PreparedMatmul> own_;
};

}  // namespace heddle::host
