#pragma once

#include <map>
#include <vector>

#include "ir/graph/fusion.h"
#include "ir/types/host_tensor.h"

namespace heddle {

// The reference evaluation defines the meaning of a fusion. It is simple and slow. Tests compare
// the results of every device with its results. The reference evaluation computes floats in double,
// and integers and bools in int64. It then rounds each value to its dtype. It ignores shardings,
// because they do not affect values.

// The inputs of a run, by value id. Tensors are unsharded. If a scalar is missing, its default is
// used.
struct ReferenceInputs {
  std::map<ValueId, HostTensor> tensors;
  std::map<ValueId, Scalar> scalars;
};

// Returns all outputs in order. A scalar output is a 0-d tensor. The evaluation frees each value
// after its last use. Throws UserError if a guard of the fusion fails, or if an input is missing or
// has another type or size than declared.
std::vector<HostTensor> evaluateReference(const Fusion& fusion, const ReferenceInputs& inputs,
                                          const SizeBindings& sizes);

// Returns selected elements of each output. wanted[i] lists the elements of output i as row-major
// linear indices. The evaluation first walks the graph backward to find the elements that it needs,
// and then computes only these elements. Exception: it computes all elements of an expression that
// reads or writes at computed indices, or that needs complete lines (cumsum, argsort). Throws the
// same errors as evaluateReference(), and UserError for an index outside of an output.
std::vector<std::vector<Scalar>> evaluateReferenceAt(
    const Fusion& fusion, const ReferenceInputs& inputs, const SizeBindings& sizes,
    const std::vector<std::vector<int64_t>>& wanted);

// Returns the values of all scalars: inputs, constants, sizes and arithmetic on them.
std::map<ValueId, Scalar> evaluateScalars(const Fusion& fusion, const ReferenceInputs& inputs,
                                          const SizeBindings& sizes);

}  // namespace heddle
