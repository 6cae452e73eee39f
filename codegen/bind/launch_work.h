#pragma once

#include <cstdint>

#include "codegen/bind/entry_numbers.h"
#include "ir/graph/fusion.h"

namespace heddle::codegen {

// The work of one launch, as far as it decides the time of the launch. It follows from sizes,
// strides and the schedule. Names of ops have no influence.
struct LaunchWork {
  int64_t blocks = 1;          // Cuda: blocks of threads; Cpp: tiles
  int32_t threads = 1;         // Cuda: threads of a block
  int64_t thread_bytes = 0;    // Cuda: bytes of operands that a thread holds in registers
  int64_t shared_bytes = 0;    // Cuda: shared memory of a block
  int64_t steps = 1;           // Cuda: how often a thread loads, waits, and loads again
  int64_t exchanges = 0;       // Cuda: how often the threads of a block exchange results
  double bytes = 0;            // bytes that the launch moves, if each byte is moved once
  double again_bytes = 0;      // bytes that the launch reads once more, in later sweeps
  double live_bytes = 0;       // bytes that one block or tile reads again
  double operations = 0;       // operations on elements (opsOf())
  double serial_elements = 0;  // Cpp: elements that depend on the previous one of their accumulator
  double loops = 0;            // Cpp: starts of inner loops
};

// Returns a rough number of operations per element: 1 for an op whose kernel text is a C operator,
// more for an op whose text calls a function.
int64_t opsOf(const Fusion& segment);

LaunchWork workOf(const EntryNumbers& entry, Target target);

}  // namespace heddle::codegen
