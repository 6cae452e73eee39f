#pragma once

#include <cudnn_graph.h>

#include <memory>
#include <mutex>

namespace heddle::host::cudnn {

// A handle of cuDNN for one device. Only one thread at a time may use it: lock `mutex`.
struct SharedHandle {
  explicit SharedHandle(int on);
  ~SharedHandle();
  SharedHandle(const SharedHandle&) = delete;
  SharedHandle& operator=(const SharedHandle&) = delete;

  const int device;
  cudnnHandle_t handle = nullptr;
  std::mutex mutex;
};

// Returns the handle of a device. The first call creates it. It is destroyed when the last copy of
// the shared pointer is released. Thread-safe.
std::shared_ptr<SharedHandle> handleOf(int device);

}  // namespace heddle::host::cudnn
