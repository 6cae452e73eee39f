#pragma once

#include <optional>
#include <string>

#include "codegen/plan/analysis.h"
#include "codegen/plan/schedule.h"
#include "codegen/plan/space.h"
#include "codegen/tile/program.h"

namespace heddle::codegen {

// The family of kernels that process rows. It serves two kinds of segments:
// - Segments that reduce rows and use the results along the same rows, such as softmax and
//   layer_norm. A row is read once and kept in registers if it fits. A longer row is read once per
//   pass (rule 4 of ir/analysis/kernel_rules.h), and later passes find it in the cache.
// - Segments whose rows begin at unaligned addresses, for example because their length is odd. The
//   threads of a row then read vectors that begin at aligned addresses (RowLayout::shifted).

// Returns whether the segment needs several passes over its rows.
bool needsSeveralPasses(const Fusion& segment, const Analysis& analysis);

// Returns whether a segment with at most one pass over its rows gains from this family, because its
// rows begin at unaligned addresses. Always false for Cpp, whose loops read any address equally
// fast.
bool hasUnalignedRows(const Space& space, Target target);

// One way to compute the rows, as plain data.
struct RowCandidate {
  RowLayout layout;
  bool looped = false;  // true: the row does not fit in registers
  bool ahead = false;   // RowForm::ahead
};

// What the candidates depend on besides the sizes. Numbers are per element of the row.
struct RowDemand {
  int64_t live_bytes = 0;    // largest number of bytes of tiles in use at one time (liveBytes())
  int64_t loaded_bytes = 0;  // bytes that the kernel reads from memory at its start
  int64_t ahead_bytes = 0;   // live_bytes for RowForm::ahead, including the tiles of the next row
  int64_t kept_bytes = 0;  // bytes of the tiles that maps make: in registers, or (Cpp) on the stack
  int64_t ops = 0;         // code of the longest body, in simple operations
  int64_t accumulators = 0;     // of all reductions, per row
  bool several_passes = false;  // needsSeveralPasses()
};

// Returns the space with at least one reduced axis, along which rows lie. The functions below that
// get a space require it.
Space withRows(Space space);

// Returns the demand. It depends on the space only through its numbers of axes, and through which
// strides are 0. Takes long, because it writes the statements.
RowDemand rowDemand(const Fusion& segment, const Analysis& analysis, const Space& rows,
                    Target target, const std::vector<Accumulator>& columns);

// Returns the candidates for these sizes, best first. Returns an empty list if the rows are too few
// or not contiguous: several launches are then better (codegen/families/passes.h).
std::vector<RowCandidate> rowCandidates(const Space& rows, Target target, const RowDemand& demand);

// Returns the schedule from which the frame of a program with this layout is built.
Schedule rowSchedule(const RowLayout& layout, const Space& rows, Target target);

// Returns the program of the best candidate, or nullopt if there is none. `space` may have no
// reduced axis. `columns` are the accumulators that
// SpaceTensor::column names.
std::optional<TileProgram> buildRows(const Fusion& segment, const Analysis& analysis,
                                     const Space& space, Target target, const std::string& entry,
                                     const std::vector<Accumulator>& columns = {});

// Returns the number of parts of a program with columns (ColumnSums).
int64_t partsOf(const RowLayout& layout, Target target, const Space& space);

}  // namespace heddle::codegen
