#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "host/device/device.h"

namespace heddle::host {

// Counts the calls that a null device has received. A member without a comment counts the calls of
// one function of the device or of its allocator; `matmul` counts the calls of
// PreparedMatmul::run().
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
  std::atomic<int64_t> operations{0};  // number of operations in all calls of communicate()
  std::atomic<int64_t> copy{0};
  std::atomic<int64_t> copied_bytes{0};  // number of bytes in all calls of copy()
  std::atomic<int64_t> fill{0};
  std::atomic<int64_t> host_task{0};
};

// Creates a device that does no work and counts calls. Use it to measure the host time of a run,
// and to test programs without a GPU.
// - Allocations return distinct addresses that are not valid and must not be accessed.
// - Events are always done.
// - Host tasks are counted and do not run.
std::unique_ptr<Device> makeNullDevice();

// Creates a null device that counts calls in `counts`. The caller can read the counts at any time,
// even after the device is destroyed.
std::unique_ptr<Device> makeNullDevice(std::shared_ptr<NullCounts> counts);

}  // namespace heddle::host
