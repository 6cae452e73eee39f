#pragma once

#include <vector>

#include "codegen/families/passes.h"
#include "codegen/plan/body.h"

namespace heddle::codegen {

// Segments with column reductions (rule 3 of ir/analysis/kernel_rules.h), such as the backward of a
// norm: the gradient of the input needs sums along rows, and those of the parameters need sums
// along columns.

// Returns columnReductions(segment). Fast if there are none.
std::vector<ExprId> columnReductionsOf(const Fusion& segment, const Analysis& analysis);

// The segment without column reductions.
struct RowPart {
  // The outputs are the outputs of the complete segment that do not depend on column reductions,
  // and then, per column reduction, its operand (PassSegment::Operand::temporary counts them).
  PassSegment pass;
  std::vector<TensorDesc> operands;  // dense
};
RowPart rowPart(const Fusion& segment, const Analysis& analysis, const AxisExtents& extents,
                const std::vector<ExprId>& columns);

// Marks the outputs of the pass without memory as columns (SpaceTensor::column). `space` is the
// space of the pass.
void markColumns(Space& space, const PassSegment& pass,
                 const std::vector<Accumulator>& accumulators);

// Returns the analysis of a kernel that computes only the column reductions.
Analysis columnAnalysis(const Fusion& segment, const Analysis& analysis,
                        const std::vector<ExprId>& columns);
// Returns the computation that finishes the columns: the accumulators of the column reductions,
// and the body that computes the outputs from them. There is no loop body.
Computation finishColumns(const Fusion& segment, const Analysis& columns, const Space& space);

// The same segment as several segments that run one after another, for sizes and layouts that the
// first way does not support. First the reductions of rows whose results the column reductions
// need, then the column reductions, then all other outputs: they may have the memory of inputs.
Passes columnPasses(const Fusion& segment, const Analysis& analysis, const AxisExtents& extents,
                    const std::vector<ExprId>& columns);

}  // namespace heddle::codegen
