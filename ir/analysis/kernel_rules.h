#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/analysis/axis_map.h"
#include "ir/graph/fusion.h"

namespace heddle {

// Decides which expressions may form one generated kernel. A kernel has one iteration space
// ("space"), which contains the axes of all values of the kernel. If axes of two values correspond
// to each other in an expression (ir/analysis/axis_map.h), they are the same axis of the space.
// Axes of one element (isUnitAxis() in ir/types/tensor.h) are not in the space. The values of a
// kernel may have axes that no tensor in memory has. For example, a kernel may expand a value along
// a new axis and then reduce this axis.
//
//  1. The kernel contains only pointwise, reduction, broadcast, expand, full, iota and index
//     expressions, and `set` expressions that only name or copy data (the steps Same and Relayout
//     of ReshardStep::Kind in ir/analysis/reshard_step.h).
//  2. No two axes of a value are the same axis of the space. A kernel therefore cannot compute the
//     outer product of a value x with itself: the axis of x would correspond to both axes of the
//     result.
//  3. The operand of each reduction has all axes of the space. All reductions reduce the same axes,
//     except *column reductions*, which reduce exactly the other axes. Rules for column reductions:
//      - If a value depends on a column reduction, it has no axis that this reduction reduces.
//      - No tensor of the kernel is sharded.
//      - The parts into which code generation divides the kernel (KernelQuestion::parts()) satisfy
//        these rules too.
//     In the other rules, "reduction" excludes column reductions.
//  4. A kernel may need several sweeps (passes) over its rows. A row consists of the elements along
//     the reduced axes. The level of a value is the largest number of reductions on a path of
//     expressions that ends with the value. A sweep computes the reductions whose operands have the
//     same level. A kernel has at most kMostKernelSweeps such sweeps, and possibly a last sweep
//     that computes outputs along the row. If a kernel has several sweeps, code generation may
//     compute each sweep as a kernel of its own. The values from which a sweep computes a
//     reduction must therefore together have all axes of the space. These values are tensors,
//     results of earlier sweeps, and results of expand, full and iota.
//  5. A stored value has all axes of the space, or exactly the axes that are not reduced. A value
//     that depends on a column reduction has exactly the reduced axes. A kernel can compute a value
//     with any other set of axes, but cannot store it.
//  6. An operand that an index expression (flip, pad, take, take_along_axis) reads at computed
//     indices must be in memory before the kernel starts. The axes of this operand are not axes of
//     the space, and rule 2 does not apply to it. A kernel may read it at any number of indices.
inline constexpr int kMostKernelSweeps = 4;

class KernelRules {
 public:
  // Borrows the fusion, which must outlive this object. The object computes the axis map of each
  // expression at most once.
  explicit KernelRules(const Fusion& fusion);

  // Returns "" if these expressions can be one kernel. Otherwise returns the reason, as a text for
  // messages. `exprs` must be in ascending order. The kernel stores a result if the result is
  // an output of the fusion, or if an expression outside of `exprs` reads it.
  std::string violation(const std::vector<ExprId>& exprs);
  // Checks the expressions like violation(exprs), but the kernel stores exactly the values in
  // `stored`. These may include inputs of the fusion.
  std::string violation(const std::vector<ExprId>& exprs, const std::vector<ValueId>& stored);
  // Returns the column reductions (rule 3) of expressions that can be one kernel.
  std::vector<ExprId> columns(const std::vector<ExprId>& exprs);

 private:
  const AxisMap& axisMap(ExprId id);

  const Fusion& fusion_;
  IdVector<ValueId, std::vector<ExprId>> readers_;
  IdVector<ValueId, char> is_output_;
  IdVector<ExprId, std::optional<AxisMap>> maps_;
};

// Returns "" if a fusion can be one kernel. Otherwise returns the reason. If the fusion consists of
// several independent parts (ir/analysis/independent_parts.h), each part must satisfy the rules.
// The fusion must be a result of extract() (ir/segment/segment.h). It may also contain constants
// and arithmetic on scalars.
std::string kernelRuleViolation(const Fusion& segment);

// Returns the column reductions (rule 3) of a fusion that can be one kernel.
std::vector<ExprId> columnReductions(const Fusion& segment);

// Returns, for each value, the expressions that read its data, in ascending order. A `size`
// expression needs only the extent of an axis, so the list omits it.
IdVector<ValueId, std::vector<ExprId>> readersOf(const Fusion& fusion);

// Returns whether a pointwise op costs little, so that a kernel should compute it again rather than
// keep or store its result. The kernel text of such an op contains no function call and no
// division.
bool isCheap(const OpDef& op);

// Returns whether the host evaluates the expression: a constant, a size or arithmetic on scalars.
bool isHostScalar(const Fusion& fusion, const Expression& expr);

}  // namespace heddle
