#pragma once

#include <map>
#include <vector>

#include "ir/graph/fusion.h"
#include "ir/types/host_tensor.h"

namespace heddle {

// The reference evaluation defines the meaning of a fusion. It is simple and slow. The results of
// every device are compared with its results. It computes floats in double, and integers and bools
// in int64. It then rounds each value to its dtype. It ignores shardings, because they do not
// affect values.

// The inputs of a run, by value id. Tensors are unsharded. A scalar that is missing has its default
// value.
struct ReferenceInputs {
  std::map<ValueId, HostTensor> tensors;
  std::map<ValueId, Scalar> scalars;
};

// Returns all outputs in order. A scalar output is a 0-d tensor. The evaluation frees each value
// after its last use.
std::vector<HostTensor> evaluateReference(const Fusion& fusion, const ReferenceInputs& inputs,
                                          const SizeBindings& sizes);

// Returns selected elements of each output. wanted[i] lists the elements of output i as row-major
// linear indices. The evaluation walks the graph backwards to find the elements that the selected
// ones need, and computes only these.
std::vector<std::vector<Scalar>> evaluateReferenceAt(
    const Fusion& fusion, const ReferenceInputs& inputs, const SizeBindings& sizes,
    const std::vector<std::vector<int64_t>>& wanted);

// Returns the values of all scalars: inputs, constants, sizes and arithmetic on them.
std::map<ValueId, Scalar> evaluateScalars(const Fusion& fusion, const ReferenceInputs& inputs,
                                          const SizeBindings& sizes);

}  // namespace heddle
