#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/analysis/axis_map.h"
#include "ir/graph/fusion.h"

namespace heddle {

// Decides which expressions may form one generated kernel. A kernel has one iteration space. Its
// axes are the axes of all values, where axes that correspond in some expression are one axis. Axes
// of one element do not count.
//
//  1. The kernel contains only pointwise, reduction, broadcast, expand, full, iota and index
//     expressions, and sets that only copy.
//  2. Each value has one set of axes. A kernel may not read both x[i] and x[j], so the outer
//     product of a value with itself is split.
//  3. All reductions span the full space and reduce the same axes. No reduction reads the result of
//     another one.
//  4. A value that depends on a reduction has no reduced axis. Otherwise the kernel would need a
//     second pass over the data.
//  5. A stored value spans the full space or exactly the axes that are not reduced. A value with
//     fewer axes can be computed where it is read, but not stored.
//  6. Each axis is an axis of a value that the kernel reads from memory or stores, because the
//     extent is taken from there. A value that is expanded and then reduced along the new axis is
//     therefore split.
//  7. An operand that an index expression (flip, pad, take, take_along_axis) reads at computed
//     indices is in memory before the kernel starts. The axes of this operand are no axes of the
//     kernel, and rule 2 does not apply: a kernel may read a value at any number of indices.
class KernelRules {
 public:
  // Borrows the fusion, which must outlive this object. The axis map of each expression is computed
  // once.
  explicit KernelRules(const Fusion& fusion);

  // Returns why these expressions cannot be one kernel, with the names of values; empty if they
  // can. `exprs` must be in ascending order. Results that are outputs of the fusion or that other
  // expressions read count as stored.
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

// Returns why a fusion that extract() (ir/segment/segment.h) returned cannot be one kernel; empty
// if it can. The fusion may also contain constants and arithmetic on scalars.
std::string kernelRuleViolation(const Fusion& segment);

// Returns, per value, the expressions that need its data, in ascending order. `size` does not
// count, because it needs only the extents. If a value has no other readers, the list keeps `size`,
// so that a group computes the value.
IdVector<ValueId, std::vector<ExprId>> readersOf(const Fusion& fusion);

// Returns whether the host evaluates the expression: a constant, a size or arithmetic on scalars.
bool isHostScalar(const Fusion& fusion, const Expression& expr);

}  // namespace heddle
