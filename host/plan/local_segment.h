#pragma once

#include "ir/graph/fusion.h"
#include "ir/types/tensor.h"

namespace heddle::host {

// Returns the segment of a kernel as one rank computes it. A segment is the part of a fusion from
// which a kernel is generated. In the result, every extent is the constant size of this rank's
// block. If there is no compiler, the reference evaluator runs the returned segment in place of a
// generated kernel. `inputs` and `outputs` describe the operands on this rank. `sizes` gives the
// values of symbols that are not the size of an operand's axis.
Fusion localSegment(const Fusion& segment, const std::vector<TensorDesc>& inputs,
                    const std::vector<TensorDesc>& outputs, const SizeBindings& sizes,
                    int64_t rank);

}  // namespace heddle::host
