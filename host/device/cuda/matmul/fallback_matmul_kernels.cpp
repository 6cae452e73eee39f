#include "host/device/cuda/matmul/fallback_matmul_kernels.h"

#include <string>

#include "codegen/compile/runtime_text.h"
#include "host/device/cuda/kernel/cuda_check.h"

namespace heddle::host {

CudaKernel& FallbackMatmulKernels::get(ProductKernel which,
                                       const codegen::KernelCompiler& compiler) {
  std::lock_guard lock(mutex_);
  if (image_.empty()) {
    std::string text(codegen::kRuntimeHeader_cuda_elements);
    text += codegen::kRuntimeHeader_cuda_product;
    image_ = compiler.compile({codegen::Target::Cuda, std::move(text)});
  }
  std::unique_ptr<CudaKernel>& kernel = kernels_[static_cast<size_t>(which)];
  if (!kernel) {
    kernel = std::make_unique<CudaKernel>(image_, kProductEntries[static_cast<size_t>(which)]);
  }
  return *kernel;
}

void PreparedFallbackMatmul::run(const MatmulOperands& operands, Stream stream,
                                 const Issue& issue) const {
  if (issue.errors != nullptr && issue.errors->failed()) return;
  if (part_) part_->run(operands, stream, issue);
  const DeviceGuard guard(device_);
  ProductArgs args = launch_.args;
  args.a = operands.a;
  args.b = operands.b;
  args.bias = adds_bias_ ? operands.bias : nullptr;
  args.c = operands.c;
  CudaKernel::Shape shape;
  shape.grid = launch_.blocks;
  shape.block = kProductThreads;
  kernel_.launch(shape, &args, static_cast<cudaStream_t>(stream));
}

void PreparedFloat8::run(const MatmulOperands& operands, Stream stream, const Issue& issue) const {
  constexpr uintptr_t kVectorMask = 15;
  uintptr_t bits = 0;
  for (const void* address :
       {operands.a, operands.b, operands.bias, static_cast<const void*>(operands.c)}) {
    bits |= reinterpret_cast<uintptr_t>(address);
  }
  ((bits & kVectorMask) == 0 ? library_ : own_)->run(operands, stream, issue);
}

}  // namespace heddle::host
