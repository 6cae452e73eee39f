#pragma once

#include "ir/graph/fusion.h"
#include "ir/types/tensor.h"

namespace heddle::host {

// A segment is the part of a fusion from which a kernel is generated. Returns a copy of the
// segment that computes only the blocks of one rank. In the copy, all extents are constants, namely
// the sizes of these blocks. If there is no compiler, the reference evaluator runs the copy in
// place of a generated kernel. `inputs` and `outputs` describe the operands on this rank. `sizes`
// gives the values of symbols that are not the size of an operand's axis.
Fusion localSegment(const Fusion& segment, const std::vector<TensorDesc>& inputs,
                    const std::vector<TensorDesc>& outputs, const SizeBindings& sizes,
                    int64_t rank);

}  // namespace heddle::host
