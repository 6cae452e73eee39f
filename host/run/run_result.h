#pragma once

#include <memory>
#include <vector>

#include "host/device/device_tensor.h"
#include "host/run/run_state.h"

namespace heddle::host {

// What the Outputs of one run share.
struct RunResult {
  // Before `values`: their memory is given back while the stream still is there.
  std::shared_ptr<Completion> completion;
  std::vector<Argument> values;
};

// Moves the buffers of outputs into tensors that own them, and frees the other buffers on stream 0.
std::vector<Argument> takeOutputs(const Plan& plan, RunState& state, Allocator& allocator,
                                  const std::vector<Argument>& inputs,
                                  const std::vector<Tensor>& preallocated);

}  // namespace heddle::host
