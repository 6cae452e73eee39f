#pragma once

#include "codegen/plan/analysis.h"
#include "codegen/plan/desc_list.h"
#include "ir/graph/fusion.h"
#include "ir/types/tensor.h"

namespace heddle::host {

// Returns a copy of `segment`. The copy computes only the blocks of rank `rank`. `segment` must be
// a segment from which a kernel can be generated. If there is no compiler, the reference evaluator
// runs the copy instead of a generated kernel. In the copy, all sizes are constants. `inputs` and
// `outputs` describe the operands on this rank. If a symbol is the size of an operand's axis, the
// operand gives its value. `sizes` gives the values of all other symbols.
Fusion localSegment(const Fusion& segment, const std::vector<TensorDesc>& inputs,
                    const std::vector<TensorDesc>& outputs, const SizeBindings& sizes,
                    int64_t rank);

// Returns those sizes of a run that codegen::planKernel() needs and that the descriptors of the
// operands do not contain. `analysis` is the analysis of the segment, and `ranks` is the number of
// ranks of the job. All other parameters have the same meaning as in localSegment().
codegen::RunSizes runSizes(const Fusion& segment, const codegen::Analysis& analysis,
                           const std::vector<TensorDesc>& inputs,
                           const std::vector<TensorDesc>& outputs, const SizeBindings& sizes,
                           int64_t rank, int64_t ranks);

}  // namespace heddle::host
