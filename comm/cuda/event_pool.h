#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <mutex>
#include <vector>

namespace heddle::comm {

// A pool of reusable CUDA events of one device, without timing. Thread-safe. A std::shared_ptr must
// own the pool.
class EventPool : public std::enable_shared_from_this<EventPool> {
 public:
  ~EventPool();

  // Records an event on `stream` and returns it. The destruction of the last reference returns the
  // event to the pool. A caller may release its reference as soon as cudaStreamWaitEvent has
  // returned, because a later record of the event does not change this wait.
  std::shared_ptr<void> record(cudaStream_t stream);

 private:
  std::mutex mutex_;
  std::vector<cudaEvent_t> idle_;
};

}  // namespace heddle::comm
