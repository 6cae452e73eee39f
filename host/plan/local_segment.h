#pragma once

#include "codegen/plan/analysis.h"
#include "codegen/plan/desc_list.h"
#include "ir/graph/fusion.h"
#include "ir/types/tensor.h"

namespace heddle::host {

// Returns a copy of a segment that computes only the blocks of one rank. A segment is the part of a
// fusion from which a kernel is generated. If there is no compiler, the reference evaluator runs
// the copy instead of a generated kernel. In the copy, all sizes are constants. `inputs` and
// `outputs` describe the operands on this rank. If a symbol is the size of an operand's axis, the
// operand gives its value. `sizes` gives the values of all other symbols.
Fusion localSegment(const Fusion& segment, const std::vector<TensorDesc>& inputs,
                    const std::vector<TensorDesc>& outputs, const SizeBindings& sizes,
                    int64_t rank);

// Returns the sizes of a run on which codegen::planKernel() depends and that the descriptors of the
// operands do not contain. `analysis` is the analysis of the segment, and `ranks` is the number of
// ranks of the job. All other parameters have the same meaning as in localSegment().
codegen::RunSizes runSizes(const Fusion& segment, const codegen::Analysis& analysis,
                           const std::vector<TensorDesc>& inputs,
                           const std::vector<TensorDesc>& outputs, const SizeBindings& sizes,
                           int64_t rank, int64_t ranks);

}  // namespace heddle::host
