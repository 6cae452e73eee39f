#pragma once

#include <string>
#include <vector>

#include "ir/graph/fusion.h"

namespace heddle::host {

// A kernel of one result that makes each element of it of those at the same place of its operands,
// and of what all rows share: scalars, and lists along the last axis. So it makes some rows from
// the same rows, however these are arranged. Rows are all axes but the last.
struct RowwiseKernel {
  std::vector<bool> has_rows;  // by operand; else a scalar or a list along the last axis
  std::string why;             // it is none; else empty
};

// `segment` as a kernel of results with `rank` axes. Ops that know where an element lies (iota, and
// what is made of it; flip, pad, take) make it none.
RowwiseKernel rowwiseKernelOf(const Fusion& segment, size_t rank);

// The same for other rows: `operands` are their types, by operand (those of scalars are not looked
// at), `order` is that of the result in memory.
Fusion kernelOnRows(const Fusion& segment, const std::vector<TensorView>& operands,
                    const AxisOrder& order, const std::string& name);

}  // namespace heddle::host
