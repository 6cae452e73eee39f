#pragma once

#include <vector>

#include "ir/analysis/reshard_step.h"

namespace heddle {

// Returns stepBetween() for shardings over two different meshes.
ReshardStep stepBetweenMeshes(const Sharding& from, const Sharding& to, const TensorView& tensor,
                              const Meshes& meshes);

// Returns a step of kind Compound.
ReshardStep compoundStep();

}  // namespace heddle
