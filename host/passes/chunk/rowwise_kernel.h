#pragma once

#include <string>
#include <vector>

#include "ir/graph/fusion.h"

namespace heddle::host {

// A kernel that can run on some rows alone. It has one result. Each element of the result depends
// only on
//   the elements of the operands at the same index, and
//   operands that all rows share: scalars, and lists along the last axis.
// Rows are all axes except the last.
struct RowwiseKernel {
  std::vector<bool> has_rows;  // by operand; false: a scalar or a list along the last axis
  std::string why;             // the reason why the kernel is not rowwise; empty if it is
};

// Returns whether `segment` is rowwise, for results with `rank` axes. Ops that use the index of an
// element are not rowwise: iota, flip, pad, take, and random numbers.
RowwiseKernel rowwiseKernelOf(const Fusion& segment, size_t rank);

// Returns the same kernel for other rows. `operands` has the type of each operand; those of scalars
// are ignored. `order` is the order of the result in memory.
Fusion kernelOnRows(const Fusion& segment, const std::vector<TensorView>& operands,
                    const AxisOrder& order, const std::string& name);

}  // namespace heddle::host
