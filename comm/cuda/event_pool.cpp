#include "comm/cuda/event_pool.h"

#include "comm/cuda_call/cuda_call.h"
#include "ir/base/check.h"

namespace heddle::comm {

EventPool::~EventPool() {
  for (cudaEvent_t event : idle_) cudaEventDestroy(event);
}

std::shared_ptr<void> EventPool::record(cudaStream_t stream) {
  cudaEvent_t event = nullptr;
  {
    std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      event = idle_.back();
      idle_.pop_back();
    }
  }
  if (event == nullptr) {
    HEDDLE_CUDA(cudaEventCreateWithFlags, &event, cudaEventDisableTiming);
  }
  std::shared_ptr<void> lease(event, [pool = shared_from_this()](void* returned) {
    std::lock_guard lock(pool->mutex_);
    pool->idle_.push_back(static_cast<cudaEvent_t>(returned));
  });
  HEDDLE_CUDA(cudaEventRecord, event, stream);
  return lease;
}

}  // namespace heddle::comm
