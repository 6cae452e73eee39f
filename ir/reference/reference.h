#pragma once

#include <map>
#include <optional>
#include <vector>

#include "ir/graph/fusion.h"
#include "ir/types/host_tensor.h"

namespace heddle {

// The reference evaluation defines the meaning of a fusion. It is simple and slow. Tests compare
// the results of every device with the results of the reference. The reference evaluation computes
// floats in double (a few ops in float: OpDef::on_singles), and integers and bools in int64. It
// then rounds each value to its dtype. It ignores shardings, because they do not affect values.

// The inputs of a run, by value id. Tensors are unsharded. If a scalar is missing, its default is
// used. A missing scalar without a default is a UserError.
struct ReferenceInputs {
  std::map<ValueId, HostTensor> tensors;
  std::map<ValueId, Scalar> scalars;
  // If a tensor is missing, randomTensor() (ir/types/host_tensor.h) generates it from this seed and
  // the name of the input. nullopt: a missing tensor is a UserError.
  std::optional<uint64_t> random_seed = {};
};

// Returns `sizes` together with the values of the inputs that decide sizes, such as `%n`. The
// functions below call withScalars() themselves.
SizeBindings withScalars(const Fusion& fusion, const ReferenceInputs& inputs, SizeBindings sizes);

// Returns all outputs in order. A scalar output is a 0-d tensor. The evaluation frees each value
// after its last use. Throws UserError if a guard of the fusion fails, if a slice or reshape is
// impossible for the sizes, or if an input is missing or has another type or size than declared.
std::vector<HostTensor> evaluateReference(const Fusion& fusion, const ReferenceInputs& inputs,
                                          const SizeBindings& sizes);

// Returns the values of all scalars: inputs, constants, sizes and arithmetic on them.
std::map<ValueId, Scalar> evaluateScalars(const Fusion& fusion, const ReferenceInputs& inputs,
                                          const SizeBindings& sizes);

}  // namespace heddle
