#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "codegen/kernel.h"
#include "host/device/cuda/kernel/cuda_kernel.h"

namespace heddle::host {

// A kernel with a fixed source text, which is compiled when the kernel is first used. Thread-safe.
class LazyKernel {
 public:
  // `text`: the CUDA source, which must outlive this object. `entry`: the name of the kernel.
  LazyKernel(const char* text, std::string entry) : text_(text), entry_(std::move(entry)) {}

  // Returns the kernel. The current CUDA device must be the device for which `compiler` compiles.
  CudaKernel& get(const codegen::KernelCompiler& compiler) {
    std::lock_guard lock(mutex_);
    if (!kernel_) {
      const codegen::KernelSource source{codegen::Target::Cuda, text_};
      kernel_ = std::make_unique<CudaKernel>(compiler.compile(source), entry_);
    }
    return *kernel_;
  }

 private:
  const char* text_;
  std::string entry_;
  std::mutex mutex_;
  std::unique_ptr<CudaKernel> kernel_;
};

}  // namespace heddle::host
