#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/analysis/axis_map.h"
#include "ir/graph/fusion.h"

namespace heddle {

// Which expressions may be one generated kernel. A kernel has one iteration space: all axes of its
// values, where axes that some expression walks together are one. Axes of one element are none.
//
//  1. Only pointwise, reduction, broadcast, expand, full, iota and index expressions, and sets that
//     merely copy.
//  2. A value is read along one set of axes: x[i] and x[j] in one kernel (an outer product of a
//     value with itself) is a cut.
//  3. All reductions span the whole space and reduce the same axes; none needs another's result.
//  4. What depends on a reduction has kept axes only: to spread a reduced value over a reduced axis
//     again takes a second pass over the data, and so a second kernel.
//  5. A value that is stored spans the whole space or exactly the kept axes. One over fewer axes
//     is computed where it is needed and cannot be stored.
//  6. Every axis is one of a value that is read from memory or stored: its extent is known from
//     there. (A value expanded and then reduced along the new axis is a cut.)
//  7. What an index expression (flip, pad, take, take_along_axis) reads at computed places is in
//     memory before the kernel starts, and its axes are none of the kernel's for that. Rule 2 does
//     not count it: a kernel may read a value at any number of places.
class KernelRules {
 public:
  // Borrows the fusion. Axis maps are made once an expression and kept.
  explicit KernelRules(const Fusion& fusion);

  // Why these expressions cannot be one kernel, in words that name values; empty when they can.
  // `exprs` ascend. Values that others use or that are outputs of the fusion are stored.
  std::string violation(const std::vector<ExprId>& exprs);
  // The same for given stored values, among them inputs.
  std::string violation(const std::vector<ExprId>& exprs, const std::vector<ValueId>& stored);

 private:
  const AxisMap& axisMap(ExprId id);

  const Fusion& fusion_;
  IdVector<ValueId, std::vector<ExprId>> readers_;
  IdVector<ValueId, char> is_output_;
  IdVector<ExprId, std::optional<AxisMap>> maps_;
};

// Why a fusion of its own, as extract() makes it, cannot be one kernel; empty when it can. It may
// hold constants and arithmetic on scalars besides.
std::string kernelRuleViolation(const Fusion& segment);

// Per value the expressions that need its data, ascending: users but for `size`, which needs only
// the extents (a value that nobody else reads keeps it, so that the value belongs somewhere).
IdVector<ValueId, std::vector<ExprId>> readersOf(const Fusion& fusion);

// Expressions the host evaluates: constants, sizes and arithmetic on scalars.
bool isHostScalar(const Fusion& fusion, const Expression& expr);

}  // namespace heddle
