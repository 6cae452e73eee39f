#pragma once

#include <optional>
#include <string>

#include "codegen/families/rows/row_candidates.h"
#include "codegen/plan/analysis.h"
#include "codegen/plan/space.h"
#include "codegen/tile/program.h"

namespace heddle::codegen {

// The family of kernels that process rows. A *row* consists of the elements along the reduced axes,
// at one index along the other axes. A *sweep* is one pass over the elements of a row (rule 4 of
// ir/analysis/kernel_rules.h). Without a choice, the family serves two kinds of segments:
// - Segments that reduce rows and use the results along the same rows, such as softmax and
//   layer_norm. A row that fits on the chip (Cuda: in registers or shared memory; Cpp: in arrays of
//   a thread) is read once. A longer row is read once per sweep. If the elements of a row are far
//   apart in memory, the kernel processes bundles of neighbouring rows
//   (codegen/families/rows/bundles.h).
// - Cuda: segments for which hasUnalignedRows() returns true. Usually their rows begin at unaligned
//   addresses, for example because the rows have an odd length. The threads of a row then read
//   vectors that begin at aligned addresses (RowLayout::shifted).
//
// If a segment also reduces *columns* (the elements at the same index of all rows), for example for
// the gradient of a bias, one kernel of this family can compute the reductions of rows and of
// columns (codegen/families/columns.h). SpaceTensor::column marks the tensors whose elements the
// kernel combines per column. Below, `columns` has one accumulator per such tensor, and
// SpaceTensor::column is an index into `columns`.

// Returns whether the segment needs several sweeps over its rows.
bool needsSeveralSweeps(const Fusion& segment, const Analysis& analysis);

// Returns the facts, other than sizes, on which the candidates (RowCandidate) depend. The call
// takes long, because it writes the statements of a tile program for each RowVariant. `rows` must
// have a reduced axis (withRows()).
RowDemands rowDemands(const Fusion& segment, const Analysis& analysis, const Space& rows,
                      Target target, const IdVector<AccumulatorId, Accumulator>& columns);

// Returns the schedule of a program with this layout, for buildFrame()
// (codegen/frame/kernel_frame.h). Lanes (codegen/plan/schedule.h) run along the innermost reduced
// axis. In bundles, they run along the innermost kept axis.
Schedule rowSchedule(const RowLayout& layout, const Space& rows, Target target);

// Returns the program of the candidate that chooseRows() returns for `choice`, or nullopt if
// chooseRows() returns nullopt. In a space without reduced axes, rows lie along the innermost axis.
// `made` receives the parameters of the candidate.
std::optional<TileProgram> buildRows(const Fusion& segment, const Analysis& analysis,
                                     const Space& space, Target target, const std::string& entry,
                                     const KernelChoice* choice, KernelChoice& made,
                                     const IdVector<AccumulatorId, Accumulator>& columns = {});

// Returns the bytes of the workspace of a program that combines no columns. Such a program has a
// workspace only if blocks share rows (RowLayout::divided).
int64_t workspaceOf(const RowLayout& layout, const Space& rows);

// A program with columns divides its rows into parts, and stores the column sums of each part
// (ColumnSums in codegen/tile/program.h). Returns the number of parts.
int64_t partsOf(const RowLayout& layout, Target target, const Space& space);

}  // namespace heddle::codegen
