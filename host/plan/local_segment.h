#pragma once

#include "ir/graph/fusion.h"
#include "ir/types/tensor.h"

namespace heddle::host {

// Returns the segment of a kernel as one rank computes it. Every extent is the constant size of
// this rank's block. Where there is no compiler, the reference evaluator runs this segment in place
// of a generated kernel. `sizes` gives the symbols that no operand determines.
Fusion localSegment(const Fusion& segment, const std::vector<TensorDesc>& inputs,
                    const std::vector<TensorDesc>& outputs, const SizeBindings& sizes,
                    int64_t rank);

}  // namespace heddle::host
