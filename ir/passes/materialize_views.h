#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Ensures that every reshape is a view, that is, copies no data. A reshape is a view if the axes
// that it merges are neighbours in memory without gaps between them (reshapeInMemory() in
// ir/analysis/reshape_order.h). Otherwise the pass inserts a `set` that copies the operand %x to
// %x_packed in row-major order. For example, it usually copies a permuted view, which is not
// row-major, and a slice, which has gaps. It also copies most values that are stored in another
// order than row-major (Layout in ir/types/tensor.h).
//
// The pass runs last, because it needs the final memory orders.
Fusion materializeViews(const Fusion& fusion);

}  // namespace heddle
