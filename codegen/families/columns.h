#pragma once

#include <vector>

#include "codegen/families/sweeps.h"
#include "codegen/plan/body.h"

namespace heddle::codegen {

// A *column reduction* (rule 3 of ir/analysis/kernel_rules.h) combines, for each position in a row,
// the elements that all rows have there. The other reductions of the segment reduce rows. A column
// reduction reduces exactly the axes that they keep. The functions below serve segments with column
// reductions. An example is the backward pass of a norm: the gradient of the input needs sums along
// rows, and the gradients of the parameters need sums along columns.

// Returns columnReductions(segment) (ir/analysis/kernel_rules.h). The call is fast if the results
// of all reductions have the same axes, because there are then no column reductions.
std::vector<ExprId> columnReductionsOf(const Fusion& segment, const Analysis& analysis);

// A segment without its column reductions. The operands of the column reductions are additional
// outputs.
struct RowPart {
  // The outputs of `sweep` are the outputs of the complete segment that do not depend on column
  // reductions. The operand of each column reduction follows as one more output, which counts as a
  // temporary (SweepSegment::Operand::temporary).
  SweepSegment sweep;
  std::vector<TensorDesc> operands;  // per column reduction: descriptor of its operand; dense
};
RowPart rowPart(const Fusion& segment, const Analysis& analysis, const AxisExtents& extents,
                const std::vector<ExprId>& columns);

// Changes the tensors of those outputs of RowPart::sweep that count as temporaries. The kernel then
// adds the elements of these outputs to columns (SpaceTensor::column) and does not store them.
// `space` is the space of the sweep, and `accumulators` are the accumulators of the column
// reductions.
void markColumns(Space& space, const SweepSegment& sweep,
                 const IdVector<AccumulatorId, Accumulator>& accumulators);

// Returns the analysis of a kernel that computes only the column reductions.
Analysis columnAnalysis(const Fusion& segment, const Analysis& analysis,
                        const std::vector<ExprId>& columns);
// Returns the computation that finishes the columns: the accumulators of the column reductions, and
// the body that computes all outputs that depend on them. There is no loop body. `columns` is the
// result of columnAnalysis(), and `space` is the space of a kernel with this analysis.
Computation finishColumns(const Fusion& segment, const Analysis& columns, const Space& space);

// Divides the segment into several segments that run one after another. Use this for sizes and
// layouts for which no kernel can both compute a RowPart and reduce the columns. If column
// reductions need values with one element per row that depend on a reduction of rows, the first
// segment computes these values. The next segment computes the column reductions and the outputs
// that depend on them. All other outputs come last.
Sweeps columnSweeps(const Fusion& segment, const Analysis& analysis, const AxisExtents& extents,
                    const std::vector<ExprId>& columns);

}  // namespace heddle::codegen
