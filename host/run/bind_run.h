#pragma once

#include <vector>

#include "host/device/device_tensor.h"
#include "host/run/run_state.h"

namespace heddle::host {

// Writes the addresses of the caller's tensors and the values of scalar inputs to `state`. Also
// computes the addresses that depend on late inputs (Plan::LatePointer). A *late input* is a scalar
// or a tensor without axes whose value decides only where slices begin. Throws UserError in any of
// these cases:
// - An input with elements has no data.
// - A scalar input has a value that its type does not allow.
// - An input or a preallocated output is in the memory of another device.
// - A preallocated output overlaps an input or another preallocated output. Exception: some outputs
//   are computed in other memory, and copied to the caller's tensor after all inputs were read.
//   Such an output may overlap inputs, except those that are donated or that the run writes.
// - An input that is donated, or that the run writes, overlaps another input.
// Two tensors whose memory ranges overlap count as overlapping, unless their strides show that they
// share no element.
void bindRun(const Plan& plan, const std::vector<Argument>& inputs,
             const std::vector<Tensor>& preallocated, RunState& state);

}  // namespace heddle::host
