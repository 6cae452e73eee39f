#pragma once

#include <memory>
#include <vector>

#include "host/device/device_tensor.h"
#include "host/run/run_state.h"

namespace heddle::host {

// The results of one run. All copies of its Outputs (host/outputs.h) share this object.
struct RunResult {
  // Keeps the shared stream of the runs alive until the memory of `values` is freed on it. To be
  // destroyed after `values`, `completion` is declared first.
  std::shared_ptr<Completion> completion;
  std::vector<Argument> values;
};

// Returns the outputs of an issued run. The returned tensors own the buffers of the outputs. Frees
// all other buffers that the run still holds, in the order of stream 0.
std::vector<Argument> takeOutputs(const Plan& plan, RunState& state, Allocator& allocator,
                                  const std::vector<Argument>& inputs,
                                  const std::vector<Tensor>& preallocated);

}  // namespace heddle::host
