#pragma once

#include <optional>

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

// Returns a copy of the segment in which the widths of every pad are numbers, as planKernel()
// (codegen/emit/plan_kernel.h) requires. Returns nullopt if they are already numbers. The
// parameters are those of localSegment().
std::optional<Fusion> withPadWidths(const Fusion& segment, const std::vector<TensorDesc>& inputs,
                                    const std::vector<TensorDesc>& outputs,
                                    const SizeBindings& sizes);

// Returns the descriptors of the values of the segment that planKernel() needs for axes that no
// operand has (codegen/plan/generated.h). The parameters are those of localSegment(); `ranks` is
// the number of ranks of the job.
std::vector<TensorDesc> generatedDescs(const Fusion& segment, const std::vector<TensorDesc>& inputs,
                                       const std::vector<TensorDesc>& outputs,
                                       const SizeBindings& sizes, int64_t rank, int64_t ranks);

}  // namespace heddle::host
