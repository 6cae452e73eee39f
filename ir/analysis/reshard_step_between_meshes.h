#pragma once

#include <vector>

#include "ir/analysis/reshard_step.h"

namespace heddle {

// Implements stepBetween() (ir/analysis/reshard_step.h) for shardings on two different meshes.
ReshardStep stepBetweenMeshes(const Sharding& from, const Sharding& to, const TensorView& tensor,
                              const Meshes& meshes);

// Returns a step of kind Compound.
ReshardStep compoundStep();

}  // namespace heddle
