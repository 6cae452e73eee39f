#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <mutex>
#include <vector>

namespace heddle::comm {

// Reusable events of one device, without timing. Thread-safe.
class EventPool : public std::enable_shared_from_this<EventPool> {
 public:
  ~EventPool();

  // Records an event on `stream`. The last reference returns it to the pool. Release it after the
  // calls of cudaStreamWaitEvent: such a wait refers to the record before it, even if the event is
  // recorded again.
  std::shared_ptr<void> record(cudaStream_t stream);

 private:
  std::mutex mutex_;
  std::vector<cudaEvent_t> idle_;
};

}  // namespace heddle::comm
