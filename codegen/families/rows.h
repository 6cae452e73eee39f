#pragma once

#include <optional>
#include <string>

#include "codegen/families/row_candidates.h"
#include "codegen/plan/analysis.h"
#include "codegen/plan/space.h"
#include "codegen/tile/program.h"

namespace heddle::codegen {

// The family of kernels that process rows. It serves two kinds of segments:
// - Segments that reduce rows and use the results along the same rows, such as softmax and
//   layer_norm. A row is read once and kept in registers if it fits. A longer row is read once per
//   sweep (rule 4 of ir/analysis/kernel_rules.h), and later sweeps find it in the cache.
//   If the elements of a row are far apart in memory, bundles of neighbouring rows take the place
//   of rows (codegen/families/bundles.h).
// - Segments whose rows begin at unaligned addresses, for example because their length is odd. The
//   threads of a row then read vectors that begin at aligned addresses (RowLayout::shifted).

// Returns whether the segment needs several sweeps over its rows.
bool needsSeveralSweeps(const Fusion& segment, const Analysis& analysis);

// Returns the demands. Takes long, because it writes the statements of all variants. `rows` must
// have a reduced axis (withRows()).
RowDemands rowDemands(const Fusion& segment, const Analysis& analysis, const Space& rows,
                      Target target, const IdVector<AccumulatorId, Accumulator>& columns);

// Returns the schedule from which the frame of a program with this layout is built. Lanes run along
// the innermost reduced axis; in bundles, they run along the innermost kept axis.
Schedule rowSchedule(const RowLayout& layout, const Space& rows, Target target);

// Returns the program of the best candidate, or nullopt if there is none. In a space without
// reduced axes, rows lie along the innermost axis. `columns` contains the accumulators to which
// SpaceTensor::column refers. `choice` is that of chooseRows(). `made` receives the parameters.
std::optional<TileProgram> buildRows(const Fusion& segment, const Analysis& analysis,
                                     const Space& space, Target target, const std::string& entry,
                                     const KernelChoice* choice, KernelChoice& made,
                                     const IdVector<AccumulatorId, Accumulator>& columns = {});

// Returns the bytes of the workspace of a program without columns.
int64_t workspaceOf(const RowLayout& layout, const Space& rows);

// Returns the number of parts of a program with columns (ColumnSums).
int64_t partsOf(const RowLayout& layout, Target target, const Space& space);

}  // namespace heddle::codegen
