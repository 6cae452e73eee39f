#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace heddle::host {

// One kernel of a cubin, loaded for the device that is current in the constructor. The kernel has
// one parameter, a struct. Thread-safe.
class CudaKernel {
 public:
  CudaKernel(const std::vector<std::byte>& cubin, const std::string& entry);
  ~CudaKernel();
  CudaKernel(const CudaKernel&) = delete;
  CudaKernel& operator=(const CudaKernel&) = delete;

  struct Shape {
    int64_t grid = 1;           // blocks in x
    int32_t grid_y = 1;         // blocks in y
    int32_t block = 1;          // threads per block
    int32_t shared_bytes = 0;   // dynamic shared memory per block
    bool starts_early = false;  // LaunchStage::starts_early, if the device supports it
  };
  // Enqueues one launch. `args` points to the parameter, which the driver copies before the call
  // returns. The device of the kernel must be the current CUDA device.
  void launch(const Shape& shape, const void* args, cudaStream_t stream);

  struct Resources {
    int32_t registers = 0;            // per thread
    int64_t local_bytes = 0;          // local memory per thread
    int64_t static_shared_bytes = 0;  // per block
    int32_t blocks_per_sm = 0;        // blocks that an SM executes at the same time
  };
  // Returns the resources of a launch whose blocks have `block` threads and `shared_bytes` bytes of
  // dynamic shared memory. The device of the kernel must be the current CUDA device.
  Resources resources(int32_t block, int32_t shared_bytes);

 private:
  void allowShared(int32_t bytes);

  std::string entry_;
  cudaLibrary_t library_ = nullptr;
  cudaKernel_t kernel_ = nullptr;
  int device_ = 0;
  std::mutex mutex_;                         // locked while a thread raises `shared_allowed_`
  std::atomic<int32_t> shared_allowed_ = 0;  // limit of dynamic shared memory per block
};

}  // namespace heddle::host
