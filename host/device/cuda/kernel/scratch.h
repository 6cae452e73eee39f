#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <utility>

#include "host/device/cuda/kernel/cuda_check.h"

namespace heddle::host {

// Temporary memory from the device's pool for work on one stream. The destructor frees it in stream
// order, after all work that has been enqueued.
class Scratch {
 public:
  Scratch() = default;
  // Allocates nothing if `bytes` is 0.
  Scratch(int64_t bytes, cudaStream_t stream) : stream_(stream) {
    if (bytes > 0) HEDDLE_CUDA(cudaMallocAsync, &memory_, static_cast<size_t>(bytes), stream);
  }
  Scratch(Scratch&& other) noexcept
      : memory_(std::exchange(other.memory_, nullptr)), stream_(other.stream_) {}
  Scratch& operator=(Scratch&&) = delete;
  ~Scratch() {
    if (memory_ != nullptr) cudaFreeAsync(memory_, stream_);
  }
  void* get() const { return memory_; }

 private:
  void* memory_ = nullptr;
  cudaStream_t stream_ = nullptr;
};

}  // namespace heddle::host
