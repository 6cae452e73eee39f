#pragma once

#include <string>
#include <vector>

#include "ir/graph/fusion.h"

namespace heddle::host {

// Says whether a kernel is rowwise. A rowwise kernel can compute some rows of its result without
// the other rows. A row consists of the elements along the last axis, at one index along the other
// axes. A rowwise kernel has one result, and each row of the result depends only on
//   the same row of the operands, and
//   operands that all rows share: scalars, and vectors along the last axis.
// Its reductions reduce only the last axis, and keep it as an axis of one element.
struct RowwiseKernel {
  std::vector<bool> has_rows;  // per operand; false: a scalar or a vector along the last axis
  std::string why;             // the reason why the kernel is not rowwise; empty: it is rowwise
};

// Checks whether the kernel that computes the fusion `segment` is rowwise. `rank` is the number of
// axes that the result must have. For example, a kernel is not rowwise if it contains an op that
// uses the index of an element: iota, flip, pad, take or random numbers.
RowwiseKernel rowwiseKernelOf(const Fusion& segment, size_t rank);

// Returns the rowwise kernel `segment` for tensors with a different number of rows, as a fusion
// with the name `name`. `operands` are the new types of the operands; the types of scalars are
// ignored. `order` is the memory order of the result.
Fusion kernelOnRows(const Fusion& segment, const std::vector<TensorView>& operands,
                    const AxisOrder& order, const std::string& name);

}  // namespace heddle::host
