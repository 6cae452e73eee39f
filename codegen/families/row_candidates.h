#pragma once

#include <cstdint>
#include <optional>

#include "codegen/kernel_choice.h"
#include "codegen/plan/space.h"
#include "codegen/tile/program.h"

namespace heddle::codegen {

// The layouts of kernels that process rows (codegen/families/rows.h), for given sizes.

// Returns whether a segment with at most one sweep over its rows gains from this family, because
// its rows begin at unaligned addresses. Always false for Cpp, whose loops read any address equally
// fast.
bool hasUnalignedRows(const Space& space, Target target);

// Which values a program keeps for later sweeps over the row.
enum class RowVariant : uint8_t {
  ManyOps,    // values whose computation takes several ops or is expensive; only with columns
  Expensive,  // values whose computation is expensive
  Loaded,     // no values: each sweep computes them again from the loaded tiles
};

// The values of the parameter "hold" of a choice, which says what a kernel holds for later sweeps
// over a row: the values of RowVariant::Expensive, or the row, in registers or in shared memory.
enum class Hold : uint8_t { Values, Row, Shared };
inline constexpr Hold kHolds[] = {Hold::Values, Hold::Row, Hold::Shared};

// One way to compute the rows, as plain data.
struct RowCandidate {
  RowLayout layout;
  bool looped = false;  // true: the row does not fit in registers
  bool ahead = false;   // RowForm::ahead
  RowVariant variant = RowVariant::Expensive;
};

// The facts besides sizes on which the candidates depend. Numbers are per element of the row.
struct RowDemand {
  int64_t live_bytes = 0;    // bytes of tiles at once (liveBytes())
  int64_t loaded_bytes = 0;  // bytes that the kernel reads from memory at its start
  int64_t ahead_bytes = 0;   // live_bytes with RowForm::ahead, and the tiles of the next row
  int64_t kept_bytes = 0;  // bytes of the tiles that maps make: in registers, or (Cpp) on the stack
  int64_t ops = 0;         // number of simple operations of the longest body (opsOf())
  int64_t accumulators = 0;     // accumulators of all reductions, per row
  bool several_sweeps = false;  // needsSeveralSweeps()
  bool joined_sweeps = false;  // needsSeveralSweeps(), with joint reductions if the target has them
};

// What a kernel of rows does besides one reading of each row.
struct RowSweeps {
  int32_t reads = 1;      // how often it reads a row that does not fit in registers
  int32_t exchanges = 0;  // how often the threads of a row exchange parts of their reductions
};

// The demands of the variants. They depend on a space only through its numbers of axes, and through
// which strides are 0.
struct RowDemands {
  std::optional<RowDemand> many_ops;  // set only for Cuda with columns
  RowDemand expensive;
  std::optional<RowDemand> loaded;  // set only for Cuda without columns, with several sweeps
  RowSweeps sweeps;
};

// Returns the best candidate for these sizes. Returns nullopt if the rows are too few, or if their
// elements are not neighbours in memory and bundles do not suit them (codegen/families/bundles.h).
// Several launches are then better (codegen/families/sweeps.h). `rows` must have a
// reduced axis (withRows()). A choice of the family "rows" changes the parameters that it names, as
// far as the space permits. With such a choice, few rows are no reason for nullopt. The same holds
// for a choice of the family "divided". A choice has no effect on a space with columns.
std::optional<RowCandidate> chooseRows(const Space& rows, Target target, const RowDemands& demands,
                                       const KernelChoice* choice);

// Does the same, but each block processes complete rows.
std::optional<RowCandidate> chooseWholeRows(const Space& rows, Target target,
                                            const RowDemands& demands, const KernelChoice* choice);

// Returns the parameters of a candidate. Their family is "rows", or "divided" if blocks share rows
// (codegen/families/divide_rows.h).
KernelChoice choiceOf(const RowCandidate& candidate, Target target);

// Returns whether the family of rows plans a segment of one piece without column reductions.
// `several_sweeps`: needsSeveralSweeps(). `space` is that of the segment.
inline bool plansRows(const KernelChoice* choice, bool several_sweeps, const Space& space,
                      Target target) {
  if (several_sweeps || isFamily(choice, "rows")) return true;
  return !isFamily(choice, "loops") && !isFamily(choice, "squares") &&
         hasUnalignedRows(space, target);
}
// Returns whether a segment for which plansRows() is false may consist of squares.
inline bool mayPlanSquares(const KernelChoice* choice) { return !isFamily(choice, "loops"); }

// Returns whether the kernel also adds elements to columns (SpaceTensor::column).
bool hasColumns(const Space& space);

// Returns the space with at least one reduced axis, along which rows lie. If `space` has none, the
// innermost kept axis becomes a reduced axis.
Space withRows(Space space);

// Cpp: returns the number of elements of an item, which one inner loop computes.
int64_t cpuChunk(const Space& space);

// Cpp: returns the number of rows in a tile of the grid. With columns there are few tiles, because
// each tile is a part of ColumnSums.
int64_t cpuTileRows(const Space& space);

}  // namespace heddle::codegen
