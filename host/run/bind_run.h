#pragma once

#include <vector>

#include "host/device/device_tensor.h"
#include "host/run/run_state.h"

namespace heddle::host {

// Writes the pointers and scalars of a run to `state`, and computes the addresses that depend on
// late inputs (Plan::LatePointer). Throws UserError if an input has no data, or if a preallocated
// output overlaps an input or another output.
void bindRun(const Plan& plan, const std::vector<Argument>& inputs,
             const std::vector<Tensor>& preallocated, RunState& state);

}  // namespace heddle::host
