#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <mutex>
#include <vector>

namespace heddle::comm {

// Events without timing of one device, used again and again. Thread-safe.
class EventPool : public std::enable_shared_from_this<EventPool> {
 public:
  ~EventPool();

  // Records an event on `stream`. It returns to the pool with the last reference, which is right as
  // soon as everybody has called cudaStreamWaitEvent on it: a wait keeps what was recorded before.
  std::shared_ptr<void> record(cudaStream_t stream);

 private:
  std::mutex mutex_;
  std::vector<cudaEvent_t> idle_;
};

}  // namespace heddle::comm
