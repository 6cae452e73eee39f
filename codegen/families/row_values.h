#pragma once

#include <cstdint>
#include <vector>

#include "codegen/plan/analysis.h"

namespace heddle::codegen {

// Facts about the values of a segment whose kernel makes several sweeps. Sweep i computes the
// reductions whose operands have level i. The last sweep computes the outputs. The second reduction
// of a pair (Analysis::joint) belongs to the sweep of the first one.
struct RowValues {
  // The largest number of reductions on a path that ends with the value.
  IdVector<ValueId, int> level;
  // true: the value has no reduced axis, so it has one element per row. A segment without
  // reductions has no such values.
  IdVector<ValueId, bool> per_row;
  // Per sweep: the values that the sweep must compute. These are the operands of its reductions.
  // For the last sweep, these are the outputs that are not per row.
  std::vector<std::vector<ValueId>> roots;
  // Per sweep except the last; without the second reductions of pairs.
  std::vector<std::vector<ExprId>> reductions;
  int sweeps() const { return static_cast<int>(roots.size()); }
};

RowValues rowValuesOf(const Fusion& segment, const Analysis& analysis);

// Returns the values along the row that a kernel should keep for later sweeps, in the order of the
// segment. A value is kept if several sweeps need it, and if one of these conditions holds:
// - Its computation is expensive. (Casts, sums and products are cheap.)
// - Its computation takes at least `many_ops` pointwise ops.
// - The value replaces tiles with more bytes.
constexpr int64_t kKeepExpensive = INT64_MAX;
std::vector<ValueId> keptValues(const Fusion& segment, const RowValues& values,
                                int64_t many_ops = kKeepExpensive);

// Returns the values that `sweep` computes along the row: its roots, and the values on which they
// depend. Inputs, values per row and the values in `leaves` are not in the list.
std::vector<ValueId> computedAlongRow(const Fusion& segment, const RowValues& values, int sweep,
                                      const IdVector<ValueId, bool>& leaves);

}  // namespace heddle::codegen
