#pragma once

#include <optional>

#include "ir/graph/fusion.h"

namespace heddle {

// Returns the order of the axes of a value in memory, outermost axis first, as far as it is known
// before a run:
//  - The result of a kernel, library call or collective has the order TensorView::allocationOrder()
//    (ir/types/tensor.h).
//  - An input has its observed order (Layout::observed). Without an observed layout the order is
//    row-major.
//  - A permuted view has the permuted order of its base. The result of a reshape is row-major.
//  - The result is nullopt if there are gaps between the elements. This is true for the result of a
//    slice, for a shard that is a view of a replicated tensor, and for an input that was observed
//    with gaps. It is also true for the result of an all-to-all whose padded blocks are not
//    outermost.
// Padding does not count as a gap in two cases. An uneven shard may have padding at its end. If a
// collective wrote or reads blocks of equal size, there may be padding after the last element of
// the outermost axis.
std::optional<AxisOrder> elementOrder(const Fusion& fusion, ValueId id);

// Returns elementOrder(), or nullopt if the value is the result of a collective. The memory of this
// result is padded for the collective that wrote it, and the next collective may need other
// padding.
std::optional<AxisOrder> memoryOrder(const Fusion& fusion, ValueId id);

// Returns the value of which `id` is a permuted view, or `id` if it is no permuted view. The memory
// order of either value determines the memory order of the other value.
ValueId baseOf(const Fusion& fusion, ValueId id);

// Returns whether two orders are equal for this tensor. The comparison ignores broadcast axes. It
// also ignores other axes of one element if the tensor has no sharding. In a tensor with a
// sharding, these axes may be padded and therefore count.
bool sameOrder(const AxisOrder& a, const AxisOrder& b, const TensorView& tensor);

// Returns whether `axis` is the outermost axis in `order`. Axes that sameOrder() ignores may
// precede it.
bool isOutermost(const AxisOrder& order, int64_t axis, const TensorView& tensor);

// Returns `order` with `axis` moved to the front, that is, as the outermost axis.
AxisOrder withOutermost(const AxisOrder& order, int64_t axis);

}  // namespace heddle
