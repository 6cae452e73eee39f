#pragma once

#include <vector>

#include "ir/analysis/reshard_step.h"

namespace heddle {

// stepBetween() of states over two meshes.
ReshardStep stepBetweenMeshes(const Sharding& from, const Sharding& to, const TensorView& tensor,
                              const Meshes& meshes);

ReshardStep compoundStep();

}  // namespace heddle
