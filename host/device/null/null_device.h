#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "host/device/device.h"

namespace heddle::host {

// What a null device was asked to do.
struct NullCounts {
  std::atomic<int64_t> allocate{0};
  std::atomic<int64_t> deallocate{0};
  std::atomic<int64_t> create_stream{0};
  std::atomic<int64_t> create_urgent_stream{0};  // of these
  std::atomic<int64_t> create_event{0};
  std::atomic<int64_t> record_event{0};
  std::atomic<int64_t> wait_event{0};
  std::atomic<int64_t> synchronize{0};
  std::atomic<int64_t> load{0};
  std::atomic<int64_t> launch{0};
  std::atomic<int64_t> matmul{0};
  std::atomic<int64_t> library{0};
  std::atomic<int64_t> communicate{0};
  std::atomic<int64_t> operations{0};  // of all groups given to communicate()
  std::atomic<int64_t> copy{0};
  std::atomic<int64_t> copied_bytes{0};
  std::atomic<int64_t> fill{0};
  std::atomic<int64_t> host_task{0};
};

// Does nothing and counts: host cost measured alone, programs tested with no device.
std::unique_ptr<Device> makeNullDevice();

// makeNullDevice() with a view of its counts, which outlive the device. Memory is made-up distinct
// addresses that must not be touched; events are always done; host tasks are dropped, not run.
std::unique_ptr<Device> makeNullDevice(std::shared_ptr<NullCounts> counts);

}  // namespace heddle::host
