#pragma once

#include "ir/graph/fusion.h"
#include "ir/types/tensor.h"

namespace heddle::host {

// The segment of a kernel as one rank computes it: every extent is the constant of this rank's
// block, so the reference evaluator can stand in for a generated kernel where there is no compiler.
Fusion localSegment(const Fusion& segment, const std::vector<TensorDesc>& inputs,
                    const std::vector<TensorDesc>& outputs, const SizeBindings& sizes,
                    int64_t rank);

}  // namespace heddle::host
