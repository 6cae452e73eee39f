#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "host/device/device.h"

namespace heddle::host {

struct CpuOptions {
  int threads = 0;  // threads that run kernel tiles; 0: one per core
  // For tests. Unset: each stream has its own worker and runs as soon as it can. Set: one worker
  // runs all streams of the device in a seeded order that delays work as long as the dependencies
  // allow. New and freed memory is then filled with 0xFF bytes, which are NaN for floats.
  std::optional<uint64_t> adversarial_seed;
  int64_t memory_limit = 0;  // bytes of the device's pool; 0: no limit
};
// Creates a device on the CPU and its memory.
std::unique_ptr<Device> makeCpuDevice(const CpuOptions& options = {});

}  // namespace heddle::host
