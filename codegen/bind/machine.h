#pragma once

#include <cstdint>
#include <string_view>

#include "codegen/kernel.h"

namespace heddle::codegen {

// The numbers of a device from which the time of a kernel is predicted (codegen/bind/time_model.h).
// codegen/bind/machine.cpp says where the numbers of each known device come from.
struct Machine {
  Target target = Target::Cuda;
  double processors = 1;         // Cuda: multiprocessors; Cpp: threads of the device
  double bytes_per_second = 0;   // bytes that a copy reads and writes, all processors together
  double cached_per_second = 0;  // the same for bytes that are in the cache
  double cache_bytes = 0;        // Cuda: size of the L2 cache; Cpp: of the caches of one core
  double operations_per_second =
      0;  // as opsOf() (codegen/bind/launch_work.h) counts, all processors together
  double launch_seconds = 0;  // a launch of a kernel that does nothing
  // Cuda only.
  double load_seconds = 0;      // from a load to its value, while the memory is busy
  double exchange_seconds = 0;  // an exchange through shared memory with its two barriers
  double threads = 0;           // largest number of threads on a multiprocessor
  double blocks = 0;            // largest number of blocks on a multiprocessor
  double registers = 0;         // registers of a multiprocessor
  double shared_bytes = 0;      // shared memory of a multiprocessor
  // Cpp only.
  double thread_bytes_per_second = 0;  // bytes that one thread moves while the others are idle
  double loop_seconds = 0;             // the start of an inner loop
  double tile_seconds = 0;             // a thread takes the next tile
  double serial_seconds = 0;           // an addition that waits for the previous one
};

// Returns the numbers for a device with this description, such as "cuda:0 NVIDIA H200 (sm_90)" or
// "cpu (8 threads, avx512, oneDNN 2.6.3)". An unknown GPU has the numbers of an H100. If the
// description of a CPU contains no number of threads, the CPU counts as one thread.
Machine machineOf(Target target, std::string_view description);

}  // namespace heddle::codegen
