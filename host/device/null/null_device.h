#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "host/device/device.h"

namespace heddle::host {

// The numbers of calls that a null device received.
struct NullCounts {
  std::atomic<int64_t> allocate{0};
  std::atomic<int64_t> deallocate{0};
  std::atomic<int64_t> create_stream{0};
  std::atomic<int64_t> create_urgent_stream{0};  // also counted in create_stream
  std::atomic<int64_t> create_event{0};
  std::atomic<int64_t> record_event{0};
  std::atomic<int64_t> wait_event{0};
  std::atomic<int64_t> synchronize{0};
  std::atomic<int64_t> load{0};
  std::atomic<int64_t> launch{0};
  std::atomic<int64_t> matmul{0};
  std::atomic<int64_t> library{0};
  std::atomic<int64_t> communicate{0};
  std::atomic<int64_t> operations{0};  // in all groups passed to communicate()
  std::atomic<int64_t> copy{0};
  std::atomic<int64_t> copied_bytes{0};
  std::atomic<int64_t> fill{0};
  std::atomic<int64_t> host_task{0};
};

// Creates a device that does no work and counts calls. It serves to measure host costs alone, and
// to test programs without a device.
// - Memory consists of distinct invented addresses that must not be accessed.
// - Events are always done.
// - Host tasks are dropped, not run.
std::unique_ptr<Device> makeNullDevice();

// Creates a null device that counts calls in `counts`. The caller can read the counts at any time,
// also after the device is destroyed.
std::unique_ptr<Device> makeNullDevice(std::shared_ptr<NullCounts> counts);

}  // namespace heddle::host
