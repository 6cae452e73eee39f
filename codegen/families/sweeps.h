#pragma once

#include "codegen/kernel.h"
#include "codegen/plan/analysis.h"
#include "codegen/plan/space.h"
#include "ir/types/tensor.h"

namespace heddle::codegen {

// A smaller segment that computes a part of a *complete* segment in its own launches. Usually this
// part is one *sweep*, which is one pass over the elements of all rows (rule 4 of
// ir/analysis/kernel_rules.h). divideIntoSweeps() divides a complete segment into such segments,
// which run one after another. Values that later sweeps read are *temporaries* in the workspace.
// Such segments serve sizes for which one launch is slow, for example few and long rows, or rows
// whose elements are not neighbours in memory.
struct SweepSegment {
  Fusion segment;
  // Refers to an operand of the complete segment, or to a temporary. `inputs` has one Operand per
  // input of `segment`, and `outputs` has one per output.
  struct Operand {
    int operand = -1;    // index into the inputs and then the outputs of the complete segment
    int temporary = -1;  // index into Sweeps::temporaries
  };
  std::vector<Operand> inputs;
  std::vector<Operand> outputs;
};

// Returns the operand of the complete segment, or the temporary, to which operand `operand` of the
// sweep refers.
inline const SweepSegment::Operand& operandOf(const SweepSegment& sweep, int32_t operand) {
  const auto i = static_cast<size_t>(operand);
  return i < sweep.inputs.size() ? sweep.inputs[i] : sweep.outputs[i - sweep.inputs.size()];
}

// Returns a sweep with the operands of an independent part of a segment
// (ir/analysis/independent_parts.h). The sweep has no temporaries. SweepSegment::segment is empty,
// so that the function need not copy the segment of the part.
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

// Returns the operands of a sweep. `all` are the operands of the complete segment. Temporaries have
// kFullAlignment.
Operands operandsOf(const SweepSegment& sweep, const Operands& all,
                    const std::vector<TensorDesc>& temporaries);

// Appends the text and the launches of `part`, the plan of a sweep, to the plan of the complete
// segment. Temporary i begins at byte temporary_offsets[i] of the workspace.
void appendSweep(KernelPlan& plan, const SweepSegment& sweep,
                 const std::vector<int64_t>& temporary_offsets, KernelPlan part);

// A complete segment, divided into smaller ones.
struct Sweeps {
  std::vector<SweepSegment> segments;     // in the order in which they must run
  std::vector<TensorDesc> temporaries;    // dense, one element per row
  std::vector<ValueId> temporary_values;  // per temporary: its value in the complete segment
};

// Divides a segment into sweeps. Each sweep becomes one or several segments. An output may have the
// memory of an input, and no segment may read an input that an earlier segment has overwritten. A
// segment therefore stores an output only if no later segment reads an input with the same memory.
Sweeps divideIntoSweeps(const Fusion& segment, const Analysis& analysis,
                        const AxisExtents& extents);

}  // namespace heddle::codegen
