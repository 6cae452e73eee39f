#pragma once

#include "codegen/kernel.h"
#include "codegen/plan/analysis.h"
#include "codegen/plan/space.h"
#include "ir/types/tensor.h"

namespace heddle::codegen {

// One sweep of a segment that needs several sweeps (rule 4 of ir/analysis/kernel_rules.h).
// divideIntoSweeps() divides such a segment into sweeps, which run one after another. Results of
// reductions that a later sweep reads are temporaries in the workspace. Sweeps are used for sizes
// for which one launch is slow: few and long rows, or rows whose elements are not neighbours.
struct SweepSegment {
  Fusion segment;
  // Refers to an operand of the complete segment, or to a temporary. `inputs` and `outputs` have
  // one entry per input and output of `segment`.
  struct Operand {
    int operand = -1;    // index into the inputs and then the outputs of the complete segment
    int temporary = -1;  // index into Sweeps::temporaries
  };
  std::vector<Operand> inputs;
  std::vector<Operand> outputs;
};

// Returns the operand of the complete segment, or the temporary, that is operand `operand` of the
// sweep.
inline const SweepSegment::Operand& operandOf(const SweepSegment& sweep, int32_t operand) {
  const auto i = static_cast<size_t>(operand);
  return i < sweep.inputs.size() ? sweep.inputs[i] : sweep.outputs[i - sweep.inputs.size()];
}

// Returns a sweep without temporaries that has the operands of a part of a segment
// (ir/analysis/independent_parts.h). SweepSegment::segment is empty, so that the part is not
// copied.
SweepSegment sweepOf(const SegmentPart& part);

// The operands of a segment, as planKernel() (codegen/emit/plan_kernel.h) receives them.
struct Operands {
  std::vector<TensorDesc> inputs;
  std::vector<TensorDesc> outputs;
  std::vector<int32_t> alignments;  // per operand; empty: all have kFullAlignment

  int32_t alignmentOf(int operand) const {
    return alignments.empty() ? kFullAlignment : alignments.at(static_cast<size_t>(operand));
  }
};

// Returns the operands of a sweep. `all` are the operands of the complete segment. Temporaries are
// aligned.
Operands operandsOf(const SweepSegment& sweep, const Operands& all,
                    const std::vector<TensorDesc>& temporaries);

// Appends the text and the launches of a sweep to the plan of the complete segment. Temporary i
// begins at byte places[i] of the workspace.
void appendSweep(KernelPlan& plan, const SweepSegment& sweep, const std::vector<int64_t>& places,
                 KernelPlan part);

struct Sweeps {
  std::vector<SweepSegment> segments;     // in the order in which they must run
  std::vector<TensorDesc> temporaries;    // dense, one element per row
  std::vector<ValueId> temporary_values;  // per temporary: the value of the complete segment
};

// Divides a segment into sweeps. All outputs are stored after the last read of an input, because an
// output may have the memory of an input.
Sweeps divideIntoSweeps(const Fusion& segment, const Analysis& analysis,
                        const AxisExtents& extents);

}  // namespace heddle::codegen
