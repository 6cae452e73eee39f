#pragma once

#include <string>
#include <vector>

#include "codegen/kernel.h"
#include "ir/graph/fusion.h"
#include "ir/types/tensor.h"

namespace heddle::codegen {

// The scalar inputs of a segment keep their order among all inputs; `inputs[i]` is ignored there.
//
// Chooses schedule and candidate for the shapes of this run: any strides, any axes, several
// outputs. `inputs` and `outputs` are per operand, in the order of the segment's inputs() and
// outputs(); an output that is updated in place may equal an input. UserError when no schedule
// takes the segment. The source depends only on the segment and the chosen schedule (not on the
// exact sizes), so it is found in the caches for new sizes. Thread-safe.
KernelPlan planKernel(const Fusion& segment, const std::vector<TensorDesc>& inputs,
                      const std::vector<TensorDesc>& outputs, Target target);

// The schedule in words, for `heddle dump --stage schedule`.
std::string describeSchedule(const Fusion& segment, const std::vector<TensorDesc>& inputs,
                             const std::vector<TensorDesc>& outputs, Target target);

}  // namespace heddle::codegen
