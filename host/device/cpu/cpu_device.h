#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "host/device/device.h"

namespace heddle::host {

struct CpuOptions {
  int threads = 0;  // threads that run kernel tiles; 0: one per core
  // For tests. If it is not set, each stream has its own thread and runs as soon as it can. If it
  // is set, one thread runs all streams of the device in a random order with this seed, and delays
  // work as long as the dependencies allow (AdversarialScheduler). New and freed memory is then
  // filled with 0xFF bytes, which are NaN for floats.
  std::optional<uint64_t> adversarial_seed;
  int64_t memory_limit = 0;  // bytes of the device's pool; 0: no limit
};
// Creates a device that consists of the CPU and host memory.
std::unique_ptr<Device> makeCpuDevice(const CpuOptions& options = {});

}  // namespace heddle::host
