#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace heddle::host {

// One entry point of a cubin, loaded for the current device. Its only parameter is a struct.
// Thread-safe.
class CudaKernel {
 public:
  CudaKernel(const std::vector<std::byte>& cubin, const std::string& entry);
  ~CudaKernel();
  CudaKernel(const CudaKernel&) = delete;
  CudaKernel& operator=(const CudaKernel&) = delete;

  struct Shape {
    int64_t grid = 1;
    int32_t grid_y = 1;
    int32_t block = 1;
    int32_t shared_bytes = 0;
  };
  // Enqueues one launch. The driver copies `args` before the call returns. The device that was
  // current in the constructor must be current.
  void launch(const Shape& shape, const void* args, cudaStream_t stream);

 private:
  void allowShared(int32_t bytes);

  std::string entry_;
  cudaLibrary_t library_ = nullptr;
  cudaKernel_t kernel_ = nullptr;
  int device_ = 0;
  std::mutex mutex_;
  int32_t shared_allowed_ = 0;
};

}  // namespace heddle::host
