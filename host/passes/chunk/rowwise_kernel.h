#pragma once

#include <string>
#include <vector>

#include "ir/graph/fusion.h"

namespace heddle::host {

// Says whether a kernel is rowwise, which means that it can run on some of the rows alone. The rows
// are all axes except the last one. A rowwise kernel has one result. Each element of the result
// depends only on
//   the elements of the operands at the same index, and
//   operands that all rows share: scalars, and vectors along the last axis.
struct RowwiseKernel {
  std::vector<bool> has_rows;  // by operand; false: a scalar or a vector along the last axis
  std::string why;             // the reason why the kernel is not rowwise; empty if it is
};

// Finds out whether the kernel of `segment` is rowwise if its result has `rank` axes. Ops that use
// the index of an element are not rowwise: iota, flip, pad, take, and random numbers.
RowwiseKernel rowwiseKernelOf(const Fusion& segment, size_t rank);

// Returns the same kernel for tensors with another number of rows. `operands` has the new type of
// each operand; the types of scalars are ignored. `order` is the memory order of the result.
Fusion kernelOnRows(const Fusion& segment, const std::vector<TensorView>& operands,
                    const AxisOrder& order, const std::string& name);

}  // namespace heddle::host
