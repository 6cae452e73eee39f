#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "codegen/bind/entry_numbers.h"
#include "codegen/bind/loop_tensors.h"
#include "codegen/families/columns.h"
#include "codegen/families/rows/rows.h"
#include "codegen/families/squares.h"
#include "codegen/families/sweeps.h"
#include "codegen/plan/analysis.h"
#include "codegen/plan/desc_list.h"
#include "ir/graph/fusion.h"

namespace heddle::codegen {

// Computes the numbers (KernelNumbers) of a *piece* without its text. A piece is a segment, an
// independent part of a segment (Analysis::parts), or a sweep (SweepSegment in
// codegen/families/sweeps.h) of another piece. Makes the same decisions as planKernel(). If a fact
// does not depend on shapes, or only on what appendClasses() appends, the object keeps it for later
// calls. Not thread-safe.
class PiecePlanner {
 public:
  // The references must outlive the object.
  PiecePlanner(const Fusion& segment, const Analysis& analysis, Target target);
  ~PiecePlanner();
  PiecePlanner(PiecePlanner&&) noexcept;

  // The operands, sizes and choice for the piece, as for planKernel() (codegen/emit/plan_kernel.h).
  struct Given {
    DescList inputs;
    DescList outputs;
    const std::vector<int32_t>& alignments;
    const RunSizes& run;
    const KernelChoice* choice = nullptr;  // as for planKernel()
  };
  // Appends the numbers of the piece: its facts, its entries, and the offsets of its temporaries.
  // Returns the bytes of the workspace.
  int64_t decide(const Given& given, KernelNumbers& numbers);
  // Does the same for one of several independent parts of a segment. The pointwise loops of such
  // parts share launches.
  int64_t decidePart(const Given& given, KernelNumbers& numbers);

 private:
  // The sweeps of this piece. Each sweep is a piece.
  struct Children;
  // What decideTogether() keeps about a piece with column reductions (codegen/families/columns.h).
  struct ColumnParts;
  // What decideRows() keeps about the piece for plans with joint reductions (codegen/plan/joint.h).
  struct Joined;
  template <class Value>
  using ByClasses = std::vector<std::pair<std::string, Value>>;  // key: result of appendClasses()

  // Sets EntryNumbers::ops of the entries from `first` on. The planners of sweeps have already set
  // it for their own entries.
  void setOps(size_t first, KernelNumbers& numbers) const {
    for (size_t i = first; i < numbers.entries.size(); ++i) {
      if (numbers.entries[i].ops == 0) numbers.entries[i].ops = ops_;
    }
  }
  int64_t decideEntries(const Given& given, KernelNumbers& numbers);
  Space spaceOf(const Given& given, const AxisExtents& extents) const;
  int64_t decideSpace(const Given& given, const AxisExtents& extents, Space space,
                      KernelNumbers& numbers);
  int64_t decideLoops(Space space, const Analysis& analysis, std::optional<LoopTensors>& loops,
                      const KernelChoice* choice, KernelNumbers& numbers);
  int64_t decideRows(const Given& given, const AxisExtents& extents, Space space,
                     KernelNumbers& numbers);
  bool decideSquares(const Space& space, const KernelChoice* choice, KernelNumbers& numbers);
  bool fitsInSquares(const SquarePlan& plan);
  int64_t decideColumns(const Given& given, const AxisExtents& extents, KernelNumbers& numbers);
  std::optional<int64_t> decideTogether(const Given& given, const AxisExtents& extents,
                                        KernelNumbers& numbers);
  int64_t decideSweeps(const Given& given, const AxisExtents& extents, Children& children,
                       KernelNumbers& numbers) const;
  const RowDemands& demandsOf(const Space& rows, ByClasses<RowDemands>& demands,
                              const Fusion& segment, const Analysis& analysis,
                              const IdVector<AccumulatorId, Accumulator>& columns) const;
  std::unique_ptr<Children> childrenOf(Sweeps sweeps) const;

  const Fusion& segment_;
  const Analysis& analysis_;
  const Target target_;
  const std::vector<ExprId> columns_;
  const bool several_sweeps_;
  const int64_t ops_;  // result of opsOf(segment_)
  std::optional<LoopTensors> loops_;
  ByClasses<RowDemands> demands_;
  ByClasses<bool> squares_fit_;
  std::unique_ptr<Joined> joined_;
  std::unique_ptr<Children> sweeps_;
  std::unique_ptr<ColumnParts> together_;
  std::unique_ptr<Children> column_sweeps_;
};

}  // namespace heddle::codegen
