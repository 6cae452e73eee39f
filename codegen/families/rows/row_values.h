#pragma once

#include <cstdint>
#include <vector>

#include "codegen/plan/analysis.h"

namespace heddle::codegen {

// Facts about the values of a segment whose kernel processes rows. A *row* consists of the elements
// along the reduced axes, and a *sweep* is one pass over the elements of a row. A value *along the
// row* has an element for each element of the row. Sweep i computes the reductions whose operands
// have level i. The last sweep computes the outputs along the row. The second reduction of a pair
// (Analysis::joint) belongs to the sweep of the first one.
struct RowValues {
  // The largest number of reductions on a path that ends with the value. A pair counts as one.
  IdVector<ValueId, int> level;
  // true: the value has no reduced axis, so it has one element per row. A segment without
  // reductions has no such values.
  IdVector<ValueId, bool> per_row;
  // Per sweep: the values that the sweep must compute. These are the operands of `reductions`, or
  // the outputs along the row for the last sweep.
  std::vector<std::vector<ValueId>> roots;
  // Per sweep except the last one: the reductions that it computes, without the second reductions
  // of pairs.
  std::vector<std::vector<ExprId>> reductions;
  int sweeps() const { return static_cast<int>(roots.size()); }
};

RowValues rowValuesOf(const Fusion& segment, const Analysis& analysis);

// Returns the values along the row that a kernel should keep for later sweeps, in the order of the
// segment. A value is kept if several sweeps need it, and if one of these conditions holds:
// - The computation of the value is expensive. (Casts, sums and products are cheap.)
// - The computation of the value takes at least `many_ops` pointwise ops.
// - The inputs and kept values from which the kernel computes the value have more bytes per element
//   than the value.
constexpr int64_t kKeepExpensive = INT64_MAX;
std::vector<ValueId> keptValues(const Fusion& segment, const RowValues& values,
                                int64_t many_ops = kKeepExpensive);

// Returns the values that `sweep` computes along the row, in the order of the segment: the roots of
// the sweep, and the values on which they depend. Inputs, values per row and the values in `leaves`
// are not in the list. The search stops at these values.
std::vector<ValueId> computedAlongRow(const Fusion& segment, const RowValues& values, int sweep,
                                      const IdVector<ValueId, bool>& leaves);

}  // namespace heddle::codegen
