#pragma once

#include "ir/analysis/concretize_sizes.h"
#include "ir/reference/reference.h"

namespace heddle {

// A fusion without symbolic sizes, and its inputs.
struct ConcreteFusion {
  Fusion fusion;
  ReferenceInputs inputs;
};

// Decides the symbolic sizes of the fusion by the values in `sizes`. Returns the new fusion, and
// the same inputs with their ids in the new fusion.
inline ConcreteFusion concreteFor(const Fusion& fusion, const ReferenceInputs& inputs,
                                  const SizeBindings& sizes) {
  ConcreteFusion result{concretizeSizes(fusion, sizes), {{}, {}, inputs.random_seed}};
  for (size_t i = 0; i < fusion.inputs().size(); ++i) {
    const ValueId from = fusion.inputs()[i];
    const ValueId to = result.fusion.inputs()[i];
    const auto tensor = inputs.tensors.find(from);
    if (tensor != inputs.tensors.end()) result.inputs.tensors.emplace(to, tensor->second);
    const auto scalar = inputs.scalars.find(from);
    if (scalar != inputs.scalars.end()) result.inputs.scalars.emplace(to, scalar->second);
  }
  return result;
}

}  // namespace heddle
