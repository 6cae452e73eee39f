#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/analysis/axis_map.h"
#include "ir/graph/fusion.h"

namespace heddle {

// Decides which expressions may form one generated kernel. A kernel has one iteration space, whose
// axes are the axes of all its values. Axes that correspond in some expression
// (ir/analysis/axis_map.h) are one axis of the space. Axes of one element do not count.
//
//  1. The kernel contains only pointwise, reduction, broadcast, expand, full, iota and index
//     expressions, and sets that only copy.
//  2. Each value has the same axes of the space wherever it is read. A kernel may not read both
//     x[i] and x[j]. The outer product of a value with itself is therefore split.
//  3. All reductions span the full space and reduce the same axes. No reduction reads the result of
//     another one.
//  4. A value that depends on a reduction has no reduced axis. Otherwise the kernel would need a
//     second pass over the data.
//  5. A stored value spans the full space or exactly the axes that are not reduced. A value with
//     fewer axes can be computed where it is read, but not stored.
//  6. Each axis is an axis of a value that the kernel reads from memory or stores, because the
//     kernel takes the extent of the axis from this value. A kernel therefore cannot expand a value
//     along a new axis and then reduce this axis.
//  7. An operand that an index expression (flip, pad, take, take_along_axis) reads at computed
//     indices must be in memory before the kernel starts. The axes of this operand are not axes of
//     the kernel, and rule 2 does not apply to it: a kernel may read it at any number of indices.
class KernelRules {
 public:
  // Borrows the fusion, which must outlive this object. The axis map of each expression is computed
  // once.
  explicit KernelRules(const Fusion& fusion);

  // Returns the reason why these expressions cannot be one kernel, with the names of values, or ""
  // if they can. `exprs` must be in ascending order. A result counts as stored if it is an output
  // of the fusion or if expressions outside of `exprs` read it.
  std::string violation(const std::vector<ExprId>& exprs);
  // Does the same for a given list of stored values, which may include inputs.
  std::string violation(const std::vector<ExprId>& exprs, const std::vector<ValueId>& stored);

 private:
  const AxisMap& axisMap(ExprId id);

  const Fusion& fusion_;
  IdVector<ValueId, std::vector<ExprId>> readers_;
  IdVector<ValueId, char> is_output_;
  IdVector<ExprId, std::optional<AxisMap>> maps_;
};

// Returns the reason why a fusion cannot be one kernel, or "" if it can. The fusion must be a
// result of extract() (ir/segment/segment.h). It may also contain constants and arithmetic on
// scalars.
std::string kernelRuleViolation(const Fusion& segment);

// Returns, for each value, the expressions that read its data, in ascending order. An expression
// `size` needs only the extents, so it is not in the list. But if all readers of a value are `size`
// expressions, the list contains them, so that a group computes the value.
IdVector<ValueId, std::vector<ExprId>> readersOf(const Fusion& fusion);

// Returns whether the host evaluates the expression: a constant, a size or arithmetic on scalars.
bool isHostScalar(const Fusion& fusion, const Expression& expr);

}  // namespace heddle
