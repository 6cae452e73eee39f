#pragma once

#include <memory>
#include <vector>

#include "host/device/device_tensor.h"
#include "host/run/run_state.h"

namespace heddle::host {

// The results of one run, shared by copies of its Outputs.
struct RunResult {
  // Declared before `values`, because their memory must be freed while the stream still exists.
  std::shared_ptr<Completion> completion;
  std::vector<Argument> values;
};

// Returns the outputs of an issued run. Buffers of outputs move to tensors that own them. Other
// buffers that the run still holds are freed, in the order of stream 0.
std::vector<Argument> takeOutputs(const Plan& plan, RunState& state, Allocator& allocator,
                                  const std::vector<Argument>& inputs,
                                  const std::vector<Tensor>& preallocated);

}  // namespace heddle::host
