#pragma once

#include <vector>

#include "host/device/device_tensor.h"
#include "host/run/run_state.h"

namespace heddle::host {

// Writes the pointers and scalars of a run to `state`. Also computes the addresses that depend on
// late inputs, the scalars that decide only where slices begin (Plan::LatePointer). Throws
// UserError in any of these cases:
// - An input has no data.
// - An input or a preallocated output is in the memory of another device.
// - A preallocated output overlaps an input or another output.
// - An input that is donated, or that the run writes, overlaps another input.
void bindRun(const Plan& plan, const std::vector<Argument>& inputs,
             const std::vector<Tensor>& preallocated, RunState& state);

}  // namespace heddle::host
