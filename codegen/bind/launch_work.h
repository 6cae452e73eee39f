#pragma once

#include <cstdint>

#include "codegen/bind/entry_numbers.h"
#include "ir/graph/fusion.h"

namespace heddle::codegen {

// The facts about one entry (EntryNumbers), that is, about a launch or a part of one. They depend
// on sizes, strides, dtypes and the schedule. The time of the entry is predicted from them. Ops
// matter only through opsOf().
struct LaunchWork {
  int64_t blocks = 1;        // Cuda: blocks of threads; Cpp: tiles
  int32_t threads = 1;       // Cuda: threads of a block
  int64_t thread_bytes = 0;  // Cuda: bytes of operands that a thread holds in registers
  int64_t shared_bytes = 0;  // Cuda: shared memory of a block
  int64_t steps = 1;         // Cuda: how often a thread waits for loads or other blocks
  int64_t exchanges = 0;     // Cuda: how often the threads of a block exchange results
  double bytes = 0;          // bytes that the launch moves to access each element once
  double again_bytes = 0;    // bytes that the second and later sweeps over rows read again
  double live_bytes = 0;     // bytes per block or tile that a cache must hold to serve again_bytes
  double operations = 0;     // operations on all elements, counted as by opsOf()
  // Cpp: additions, each of which waits for the previous addition to the same accumulator.
  double serial_elements = 0;
  double loops = 0;  // Cpp: starts of inner loops
};

// Returns a rough number of operations per element. An op whose kernel text calls a function counts
// as 16 operations, and every other op counts as 1.
int64_t opsOf(const Fusion& segment);

// Returns the work of an entry (EntryNumbers): of its launch, or of its part of a shared launch.
LaunchWork workOf(const EntryNumbers& entry, Target target);

}  // namespace heddle::codegen
