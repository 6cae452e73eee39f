#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Ensures that every reshape is a view, that is, copies no data. A reshape is a view if the axes
// that it merges are neighbours in memory without gaps between them (reshapeInMemory() in
// ir/analysis/reshape_order.h). Otherwise the pass inserts a `set` that copies the operand %x to
// %x_packed in row-major order. Typical operands that need a copy are a permuted view (not
// row-major), a slice (it has gaps) and a value that is stored in another order than row-major
// (Layout in ir/types/tensor.h).
//
// The pass runs last, because it needs the final memory orders.
Fusion materializeViews(const Fusion& fusion);

}  // namespace heddle
