#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "host/device/device.h"

namespace heddle::host {

struct CpuOptions {
  int threads = 0;  // of the pool that runs kernel tiles; 0: one a core
  // Unset: streams run as soon as they can, each on its own worker. Set: one worker runs all
  // streams of the device in a seeded order that puts off whatever no dependency forbids.
  // Fresh and freed memory is then filled with 0xFF bytes, NaN for the floats.
  std::optional<uint64_t> adversarial_seed;
  int64_t memory_limit = 0;  // bytes of the device's pool; 0: what the machine has
};
std::unique_ptr<Device> makeCpuDevice(const CpuOptions& options = {});

}  // namespace heddle::host
