#pragma once

#include <map>
#include <vector>

#include "ir/graph/fusion.h"
#include "ir/types/host_tensor.h"

namespace heddle {

// What a fusion means: the obvious, slow, unsharded evaluation that every device is held against.
// Arithmetic is in double (floats) or int64 (integers and bools); each value is rounded to its
// dtype. Shardings are ignored: they change where data lives, never what it is.

// Inputs of a run by value id: tensors are unsharded; scalars missing here take their default.
struct ReferenceInputs {
  std::map<ValueId, HostTensor> tensors;
  std::map<ValueId, Scalar> scalars;
};

// All outputs, in order. A scalar output is a 0-d tensor. Frees values after their last use.
std::vector<HostTensor> evaluateReference(const Fusion& fusion, const ReferenceInputs& inputs,
                                          const SizeBindings& sizes);

// Only the listed elements (row-major linear indices) of each output: walks the graph backwards to
// find which elements of which values they need, then evaluates just those.
std::vector<std::vector<Scalar>> evaluateReferenceAt(
    const Fusion& fusion, const ReferenceInputs& inputs, const SizeBindings& sizes,
    const std::vector<std::vector<int64_t>>& wanted);

// Values of scalar values (inputs, constants, sizes and arithmetic on them).
std::map<ValueId, Scalar> evaluateScalars(const Fusion& fusion, const ReferenceInputs& inputs,
                                          const SizeBindings& sizes);

}  // namespace heddle
