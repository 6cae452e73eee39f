#pragma once

#include <cudnn_graph.h>

#include <memory>
#include <mutex>

namespace heddle::host::cudnn {

// A handle of cuDNN for one device. Only one thread at a time may use the handle. Lock `mutex`
// before every use.
struct SharedHandle {
  explicit SharedHandle(int on);
  ~SharedHandle();
  SharedHandle(const SharedHandle&) = delete;
  SharedHandle& operator=(const SharedHandle&) = delete;

  const int device;
  cudnnHandle_t handle = nullptr;
  std::mutex mutex;
};

// Returns the handle of a device, and creates the handle if it does not exist. The handle is never
// destroyed: cudnnDestroy() would wait for the GPU, which CUDA forbids while a graph is captured.
// Thread-safe.
std::shared_ptr<SharedHandle> handleOf(int device);

}  // namespace heddle::host::cudnn
