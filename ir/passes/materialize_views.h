#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Ensures that every reshape is a view, that is, copies no data. A reshape is a view if the axes
// that it merges are neighbours in memory without gaps between them (reshapeInMemory() in
// ir/analysis/reshape_order.h). Otherwise the pass inserts a `set` that copies the operand %x to
// %x_packed in row-major order. For example, the result of a permute is not row-major, and the
// result of a slice has gaps. An operand may also have a layout (ir/types/tensor.h) with another
// order.
//
// The pass runs last, because it needs the final memory orders.
Fusion materializeViews(const Fusion& fusion);

}  // namespace heddle
