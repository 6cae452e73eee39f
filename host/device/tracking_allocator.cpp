#include "host/device/device.h"

namespace heddle::host {

void* TrackingAllocator::allocate(int64_t bytes, Stream stream) {
  void* memory = inner_.allocate(bytes, stream);
  const int64_t held = held_.fetch_add(bytes) + bytes;
  int64_t peak = peak_.load();
  while (held > peak && !peak_.compare_exchange_weak(peak, held)) {
  }
  return memory;
}

void TrackingAllocator::deallocate(void* memory, int64_t bytes, Stream stream) noexcept {
  inner_.deallocate(memory, bytes, stream);
  held_.fetch_sub(bytes);
}

}  // namespace heddle::host
