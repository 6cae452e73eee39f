#pragma once

#include <cstdint>
#include <optional>

#include "codegen/families/rows/row_vectors.h"
#include "codegen/kernel_choice.h"
#include "codegen/plan/space.h"
#include "codegen/tile/program.h"

namespace heddle::codegen {

// The functions below choose the layouts of kernels that process rows
// (codegen/families/rows/rows.h), for given sizes. A *sweep* is one pass over the elements of a
// row.

// Which computed values a program keeps for later sweeps over the row (keptValues()).
enum class RowVariant : uint8_t {
  ManyOps,    // as Expensive, and values that take several ops to compute; only with column sums
  Expensive,  // values that are expensive to compute, or smaller than the tiles that they replace
  Loaded,     // no values: each sweep computes them again from the loaded tiles
};

// The values of the parameter "hold" of a choice. This parameter says what a kernel keeps on the
// chip for later sweeps over a row. Values: computed values (RowVariant::Expensive or ManyOps), in
// registers. Row: only the loaded tiles, in registers. Shared: only the loaded tiles, in shared
// memory.
enum class Hold : uint8_t { Values, Row, Shared };
inline constexpr Hold kHolds[] = {Hold::Values, Hold::Row, Hold::Shared};

// One way to compute the rows, as plain data.
struct RowCandidate {
  RowLayout layout;
  bool looped = false;  // true: each sweep reads the row again; no sweep keeps tiles for later ones
  bool ahead = false;   // true: a block loads its next row early (RowForm::ahead)
  RowVariant variant = RowVariant::Expensive;
};

// What the statements of one RowVariant need. The candidates depend on these numbers and on sizes.
// Bytes and operations are counted per element of the row.
struct RowDemand {
  int64_t live_bytes = 0;    // tiles that exist at once (liveBytes()), and states of columns
  int64_t loaded_bytes = 0;  // tiles that are loaded before the first sweep (RowStatements::loaded)
  int64_t ahead_bytes = 0;   // live_bytes with RowForm::ahead, and the tiles of the next row
  int64_t kept_bytes = 0;    // computed values that are kept: in registers, or (Cpp) on the stack
  int64_t ops = 0;           // simple operations of the longest body (opsOf())
  int64_t accumulators = 0;  // number of accumulators of a row
  bool several_sweeps = false;  // result of needsSeveralSweeps() (codegen/families/rows/rows.h)
  // Like several_sweeps, but on Cuda the two reductions of a joint pair need only one sweep.
  bool joined_sweeps = false;
};

// Counts what a kernel does for each row. Joint reductions (codegen/plan/joint.h), which only Cuda
// kernels have, can make both numbers smaller.
struct RowSweeps {
  int32_t reads = 1;      // sweeps that read the row, if the kernel cannot hold it
  int32_t exchanges = 0;  // times that the threads of a row combine their accumulators
};

// The demands of the variants. They depend on the space only through its numbers of kept and
// reduced axes, and through which strides are 0.
struct RowDemands {
  std::optional<RowDemand> many_ops;  // set only for Cuda with columns
  RowDemand expensive;
  std::optional<RowDemand> loaded;  // set only for Cuda without columns, with several sweeps
  RowSweeps sweeps;
};

// Returns the best candidate for these sizes. `rows` must have a reduced axis (withRows()). Returns
// nullopt in these cases, in which several launches are better (codegen/families/sweeps.h):
// - There are few rows, so that processors would be idle. Cuda: few rows matter only if neither a
//   block nor a cluster holds a row and divided rows do not pay (paysToDivide() in
//   codegen/families/rows/divide_rows.h), or if the kernel adds elements to columns.
// - Cuda: a row has one element, and one launch of the family "loops" can compute the segment.
// - The elements of a row are not neighbours in memory, and chooseBundles()
//   (codegen/families/rows/bundles.h) returns nullopt.
// - The kernel adds elements to columns. Cuda: a block cannot hold a row, or there are many
//   elements in rows so short that a block would process more than two at a time. Cpp: the rows
//   have fewer than 16 elements.
//
// `choice`: a choice of the family "rows" changes the parameters that it names, as far as the space
// permits. With such a choice, few rows are no reason for nullopt. The same holds for a choice of
// the family "divided" if the sizes permit divided rows (divideRows()). Otherwise a choice of the
// family "divided" has no effect. For a space with columns, `choice` is ignored.
std::optional<RowCandidate> chooseRows(const Space& rows, Target target, const RowDemands& demands,
                                       const KernelChoice* choice);

// Does the same as chooseRows(), but without divided rows. Each block processes complete rows, with
// two exceptions: several blocks share a long row of a pointwise kernel (RowLayout::row_blocks), or
// a choice of the family "rows" names a cluster (RowLayout::cluster) that can hold a row. A choice
// of the family "divided" has no effect.
std::optional<RowCandidate> chooseWholeRows(const Space& rows, Target target,
                                            const RowDemands& demands, const KernelChoice* choice);

// Cpp: does the same as chooseWholeRows(), for rows whose elements are neighbours in memory.
// `choice` is nullptr or has the family "rows".
std::optional<RowCandidate> chooseCpuRows(const Space& rows, const RowDemand& demand,
                                          const KernelChoice* choice);

// Returns the parameters of a candidate. Their family is "rows", or "divided" if blocks share rows
// (codegen/families/rows/divide_rows.h).
KernelChoice choiceOf(const RowCandidate& candidate, Target target);

// Returns whether the planner should first try the family of rows for a segment without independent
// parts and without column reductions. `several_sweeps` is the result of needsSeveralSweeps(), and
// `space` is the space of the segment.
inline bool plansRows(const KernelChoice* choice, bool several_sweeps, const Space& space,
                      Target target) {
  if (several_sweeps || isFamily(choice, "rows")) return true;
  return !isFamily(choice, "loops") && !isFamily(choice, "squares") &&
         hasUnalignedRows(space, target);
}
// Returns whether the planner may use squares for a segment for which plansRows() returns false.
inline bool mayPlanSquares(const KernelChoice* choice) { return !isFamily(choice, "loops"); }

// Returns the value of RowLayout::full for rows that the threads hold completely. The members
// vector, registers, threads, exact and shifted must be set.
bool holdsFull(const RowLayout& layout, const Space& space);

// Returns whether the choice asks for a loop over the parts of a row.
inline bool isLooped(const KernelChoice* choice) {
  return choice != nullptr && choice->find("looped").value_or(0) != 0;
}

// Cpp: returns the number of elements of an item (codegen/plan/schedule.h), which one inner loop
// computes.
int64_t cpuChunk(const Space& space);

// Cpp: returns the number of rows in a tile of the grid (LaunchStage::grid). With columns there are
// at most 64 tiles, because each tile stores separate sums of the columns (ColumnSums).
int64_t cpuTileRows(const Space& space);

}  // namespace heddle::codegen
