#pragma once

#include <vector>

#include "host/device/device_tensor.h"
#include "host/run/run_state.h"

namespace heddle::host {

// Writes the pointers and scalars of a run to `state`, and computes the addresses that depend on
// late inputs (Plan::LatePointer). Throws UserError if an input has no data, if a preallocated
// output overlaps an input or another output, or if an input that the run writes overlaps another
// input.
void bindRun(const Plan& plan, const std::vector<Argument>& inputs,
             const std::vector<Tensor>& preallocated, RunState& state);

}  // namespace heddle::host
