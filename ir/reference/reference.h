#pragma once

#include <map>
#include <vector>

#include "ir/graph/fusion.h"
#include "ir/types/host_tensor.h"

namespace heddle {

// Defines the meaning of a fusion by a simple, slow evaluation without sharding. The results of
// every device are compared with it. It computes floats in double and integers and bools in int64,
// and rounds each value to its dtype. It ignores shardings, because they do not affect values.

// The inputs of a run by value id. Tensors are unsharded. A missing scalar takes its default.
struct ReferenceInputs {
  std::map<ValueId, HostTensor> tensors;
  std::map<ValueId, Scalar> scalars;
};

// Returns all outputs in order. A scalar output is a 0-d tensor. It frees values after their last
// use.
std::vector<HostTensor> evaluateReference(const Fusion& fusion, const ReferenceInputs& inputs,
                                          const SizeBindings& sizes);

// Returns only the listed elements of each output, given as row-major linear indices. It walks the
// graph backwards to find the elements that these need, and evaluates only those.
std::vector<std::vector<Scalar>> evaluateReferenceAt(
    const Fusion& fusion, const ReferenceInputs& inputs, const SizeBindings& sizes,
    const std::vector<std::vector<int64_t>>& wanted);

// Returns the values of all scalars: inputs, constants, sizes and arithmetic on them.
std::map<ValueId, Scalar> evaluateScalars(const Fusion& fusion, const ReferenceInputs& inputs,
                                          const SizeBindings& sizes);

}  // namespace heddle
