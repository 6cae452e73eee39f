#pragma once

#include <vector>

#include "host/device/device_tensor.h"
#include "host/run/run_state.h"

namespace heddle::host {

// Writes the pointers and scalars of a run to `state`. A *late input* is a scalar that decides only
// where slices begin. The function also computes the addresses that depend on late inputs
// (Plan::LatePointer). Throws UserError in any of these cases:
// - An input with elements has no data.
// - A scalar input has a value that its type does not allow.
// - An input or a preallocated output is in the memory of another device.
// - A preallocated output overlaps an input or another output. Exception: an output that is copied
//   after all inputs were read may overlap inputs that the run does not write and that are not
//   donated.
// - An input that is donated, or that the run writes, overlaps another input.
void bindRun(const Plan& plan, const std::vector<Argument>& inputs,
             const std::vector<Tensor>& preallocated, RunState& state);

}  // namespace heddle::host
