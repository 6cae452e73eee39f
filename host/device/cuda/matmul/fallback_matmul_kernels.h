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

// The kernels of codegen/runtime/cuda_product.h. They are compiled together at the first use.
// Thread-safe.
class FallbackMatmulKernels {
 public:
  // Returns a kernel. The device for which `compiler` compiles must be current.
  CudaKernel& get(ProductKernel which, const codegen::KernelCompiler& compiler);

 private:
  std::mutex mutex_;
  std::vector<std::byte> image_;
  std::array<std::unique_ptr<CudaKernel>, std::size(kProductEntries)> kernels_;
};

// Launches one of heddle's own kernels. Without `part`, the kernel computes the full matrix
// product. With `part`, cuBLASLt first computes the matrix product `part`, and the kernel then
// applies the missing bias and activation. The kernel must outlive this object.
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

// An f8 matrix product. If all operands of a run are aligned to 16 bytes, cuBLASLt computes it.
// Otherwise heddle's own kernel computes it.
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
