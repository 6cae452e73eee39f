#pragma once

#include "codegen/kernel.h"
#include "codegen/plan/analysis.h"
#include "codegen/plan/space.h"
#include "ir/types/tensor.h"

namespace heddle::codegen {

// One pass of a segment that needs several passes (rule 4 of ir/analysis/kernel_rules.h).
// divideIntoPasses() divides such a segment into passes, which run one after another. Results of
// reductions that a later pass reads are temporaries in the workspace. Passes are used for sizes
// for which one launch is slow: few and long rows, or rows whose elements are not neighbours.
struct PassSegment {
  Fusion segment;
  // Refers to an operand of the complete segment, or to a temporary. `inputs` and `outputs` have
  // one entry per input and output of `segment`.
  struct Operand {
    int operand = -1;    // index into the inputs and then the outputs of the complete segment
    int temporary = -1;  // index into Passes::temporaries
  };
  std::vector<Operand> inputs;
  std::vector<Operand> outputs;
};

// Returns the operand of the complete segment, or the temporary, that is operand `operand` of the
// pass.
inline const PassSegment::Operand& operandOf(const PassSegment& pass, int32_t operand) {
  const auto i = static_cast<size_t>(operand);
  return i < pass.inputs.size() ? pass.inputs[i] : pass.outputs[i - pass.inputs.size()];
}

// Returns a pass without temporaries that has the operands of a part of a segment
// (ir/analysis/independent_parts.h). PassSegment::segment is empty, so that the part is not copied.
PassSegment passOf(const SegmentPart& part);

// The operands of a segment, as planKernel() (codegen/emit/plan_kernel.h) receives them.
struct Operands {
  std::vector<TensorDesc> inputs;
  std::vector<TensorDesc> outputs;
  std::vector<int32_t> alignments;  // per operand; empty: all have kFullAlignment

  int32_t alignmentOf(int operand) const {
    return alignments.empty() ? kFullAlignment : alignments.at(static_cast<size_t>(operand));
  }
};

// Returns the operands of a pass. `all` are the operands of the complete segment. Temporaries are
// aligned.
Operands operandsOf(const PassSegment& pass, const Operands& all,
                    const std::vector<TensorDesc>& temporaries);

// Appends the text and the launches of a pass to the plan of the complete segment. Temporary i
// begins at byte places[i] of the workspace.
void appendPass(KernelPlan& plan, const PassSegment& pass, const std::vector<int64_t>& places,
                KernelPlan part);

struct Passes {
  std::vector<PassSegment> segments;      // in the order in which they must run
  std::vector<TensorDesc> temporaries;    // dense, one element per row
  std::vector<ValueId> temporary_values;  // per temporary: the value of the complete segment
};

// Divides a segment into passes. All outputs are stored after the last read of an input, because an
// output may have the memory of an input.
Passes divideIntoPasses(const Fusion& segment, const Analysis& analysis,
                        const AxisExtents& extents);

}  // namespace heddle::codegen
