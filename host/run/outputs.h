#pragma once

#include <memory>
#include <vector>

#include "host/executable.h"
#include "host/run_state.h"

namespace heddle::host {

struct Outputs::State {
  // Before `values`: their memory is given back while the stream still is there.
  std::shared_ptr<Completion> completion;
  std::vector<Argument> values;
};

// Hands the buffers of outputs over to tensors that own them, and gives the others back on stream
// 0.
std::vector<Argument> takeOutputs(const Plan& plan, RunState& state, Allocator& allocator,
                                  const std::vector<Argument>& inputs, const RunOptions& options);

}  // namespace heddle::host
