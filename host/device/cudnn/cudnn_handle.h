#pragma once

#include <cudnn_graph.h>

#include <memory>
#include <mutex>

namespace heddle::host::cudnn {

// cuDNN's handle is used by one thread at a time.
struct SharedHandle {
  explicit SharedHandle(int on);
  ~SharedHandle();
  SharedHandle(const SharedHandle&) = delete;
  SharedHandle& operator=(const SharedHandle&) = delete;

  const int device;
  cudnnHandle_t handle = nullptr;
  std::mutex mutex;
};

// That of a device: made for the first who asks, it lives as long as anybody has it. Thread-safe.
std::shared_ptr<SharedHandle> handleOf(int device);

}  // namespace heddle::host::cudnn
