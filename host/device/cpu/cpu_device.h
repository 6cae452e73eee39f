#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "host/device/device.h"

namespace heddle::host {

// The library that multiplies matrices of floats, except f64. OpenBLAS always multiplies f64.
// - Any: the library that the environment variable HEDDLE_CPU_MATMUL names (onednn or openblas). If
//   the variable is not set or is empty: oneDNN if it can be loaded, and otherwise OpenBLAS.
enum class CpuMatmulLibrary : uint8_t { Any, OneDnn, OpenBlas };

struct CpuOptions {
  int threads = 0;  // number of threads that run kernels; 0: one per CPU that the process may use
  // Seed of the test mode; nullopt: no test mode.
  // - Without the test mode, each stream has its own thread and runs its tasks as soon as possible.
  // - In the test mode, one thread runs the tasks of all streams in a random order with this seed.
  //   This thread delays work as long as it can. If a program lacks a wait, the result is therefore
  //   probably wrong.
  // - In the test mode, new and freed memory is filled with 0xFF bytes, which are NaN for floats.
  std::optional<uint64_t> adversarial_seed;
  int64_t memory_limit = 0;  // largest size of the device's memory pool in bytes; 0: no limit
  CpuMatmulLibrary matmul = CpuMatmulLibrary::Any;
};

// Creates a device that consists of the CPU and host memory. Throws UserError in these cases:
// - CpuOptions::matmul (or HEDDLE_CPU_MATMUL, if `matmul` is Any) requests oneDNN, and oneDNN
//   cannot be loaded.
// - `matmul` is Any, and HEDDLE_CPU_MATMUL has a value other than onednn, openblas or the empty
//   text.
// - The system cannot start the threads.
std::unique_ptr<Device> makeCpuDevice(const CpuOptions& options = {});

}  // namespace heddle::host
