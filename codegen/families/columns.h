#pragma once

#include <vector>

#include "codegen/families/sweeps.h"
#include "codegen/plan/body.h"

namespace heddle::codegen {

// Segments with column reductions (rule 3 of ir/analysis/kernel_rules.h). An example is the
// backward of a norm: the gradient of the input needs sums along rows, and the gradients of the
// parameters need sums along columns.

// Returns columnReductions(segment). This is fast if the segment has none.
std::vector<ExprId> columnReductionsOf(const Fusion& segment, const Analysis& analysis);

// The segment without its column reductions. Their operands are additional outputs.
struct RowPart {
  // The outputs of `sweep` are the outputs of the complete segment that do not depend on column
  // reductions. The operand of each column reduction follows as one more output, which counts as a
  // temporary (SweepSegment::Operand::temporary).
  SweepSegment sweep;
  std::vector<TensorDesc> operands;  // dense
};
RowPart rowPart(const Fusion& segment, const Analysis& analysis, const AxisExtents& extents,
                const std::vector<ExprId>& columns);

// Marks the outputs of the sweep that have no memory as columns (SpaceTensor::column). `space` is
// the space of the sweep.
void markColumns(Space& space, const SweepSegment& sweep,
                 const IdVector<AccumulatorId, Accumulator>& accumulators);

// Returns the analysis of a kernel that computes only the column reductions.
Analysis columnAnalysis(const Fusion& segment, const Analysis& analysis,
                        const std::vector<ExprId>& columns);
// Returns the computation that finishes the columns: the accumulators of the column reductions,
// and the body that computes the outputs from them. There is no loop body.
Computation finishColumns(const Fusion& segment, const Analysis& columns, const Space& space);

// Divides the segment into several segments that run one after another. Use this for sizes and
// layouts for which rowPart() is not supported. The first segments reduce the rows whose results
// the column reductions need. Then come the column reductions, and last all other outputs, which
// may overwrite inputs.
Sweeps columnSweeps(const Fusion& segment, const Analysis& analysis, const AxisExtents& extents,
                    const std::vector<ExprId>& columns);

}  // namespace heddle::codegen
