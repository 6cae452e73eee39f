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

// Compiles and launches the kernels of the library functions (codegen/runtime/cuda_library.h). The
// kernels are compiled in three parts: those that work on sort keys of 32 bits, those that work on
// sort keys of 64 bits, and all others. A part is compiled when one of its kernels is needed for
// the first time. run() is thread-safe.
class CudaLibrary {
 public:
  // Enqueues the launches of a call. The current CUDA device must be the device for which
  // `compiler` compiles.
  void run(const LibraryCall& call, const codegen::KernelCompiler& compiler, cudaStream_t stream);
  // Unloads the kernels. Requires that their device is the current CUDA device and that all its
  // work is done.
  void clear();

 private:
  class Launcher;
  CudaKernel& kernel(LibraryKernel which, const codegen::KernelCompiler& compiler);

  std::mutex mutex_;
  std::array<std::vector<std::byte>, 3> images_;
  std::array<std::unique_ptr<CudaKernel>, std::size(kLibraryEntries)> kernels_;
};

}  // namespace heddle::host
