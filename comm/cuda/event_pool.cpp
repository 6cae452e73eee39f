#include "comm/cuda/event_pool.h"

#include "ir/base/error.h"

namespace heddle::comm {

void checkCuda(const char* call, cudaError_t result) {
  HEDDLE_USER_CHECK(result == cudaSuccess, "{} failed: {} ({})", call, cudaGetErrorName(result),
                    cudaGetErrorString(result));
}

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
    checkCuda("cudaEventCreateWithFlags", cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  }
  std::shared_ptr<void> lease(event, [pool = shared_from_this()](void* returned) {
    std::lock_guard lock(pool->mutex_);
    pool->idle_.push_back(static_cast<cudaEvent_t>(returned));
  });
  checkCuda("cudaEventRecord", cudaEventRecord(event, stream));
  return lease;
}

}  // namespace heddle::comm
