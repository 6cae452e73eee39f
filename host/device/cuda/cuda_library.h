#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "codegen/kernel.h"
#include "host/device/cuda/kernel/cuda_kernel.h"
#include "host/device/cuda_library_launches.h"

namespace heddle::host {

// Compiles and launches the kernels of codegen/runtime/cuda_library.h. They are compiled in three
// parts: kernels for keys of 32 bits, kernels for keys of 64 bits, and all others. Each part is
// compiled at the first call that needs one of its kernels. Thread-safe.
class CudaLibrary {
 public:
  // Enqueues the launches of a call. The device for which `compiler` compiles must be current.
  void run(const LibraryCall& call, const codegen::KernelCompiler& compiler, cudaStream_t stream);
  // Unloads the kernels. The device must be current and idle.
  void clear();

 private:
  class Launcher;
  CudaKernel& kernel(LibraryKernel which, const codegen::KernelCompiler& compiler);

  std::mutex mutex_;
  std::array<std::vector<std::byte>, 3> images_;
  std::array<std::unique_ptr<CudaKernel>, std::size(kLibraryEntries)> kernels_;
};

}  // namespace heddle::host
