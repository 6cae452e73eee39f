#pragma once

#include <optional>

#include "ir/graph/fusion.h"

namespace heddle {

// Returns the order of the elements of a value in memory, outermost axis first, as known before a
// run.
//  - Results of kernels, libraries and collectives have the required order, else the hinted order,
//    else row-major order.
//  - An input has its observed order, or row-major order without an observed layout.
//  - nullopt: the elements have gaps. This holds for the result of a slice, a shard of a replicated
//    tensor, an input that was observed with gaps, and an all-to-all whose padded blocks are not
//    outermost.
// The memory may have padding at the end of each uneven shard. If a collective wrote or reads
// blocks of equal size, there may also be padding after the last element of the outermost axis.
std::optional<AxisOrder> elementOrder(const Fusion& fusion, ValueId id);

// Does the same, but also returns nullopt for the result of a collective. Its memory is padded for
// that collective, and the next collective may need other padding.
std::optional<AxisOrder> memoryOrder(const Fusion& fusion, ValueId id);

// Returns the value whose permuted view `id` is, or `id` itself. The order of one determines the
// order of the other.
ValueId baseOf(const Fusion& fusion, ValueId id);

// Returns whether two orders are equal for this tensor. Axes of one element do not count, except
// axes that may be padded: in a tensor with a sharding, all axes that are not broadcast.
bool sameOrder(const AxisOrder& a, const AxisOrder& b, const TensorView& tensor);

// Returns whether the axis is the outermost one in `order`. Axes that do not count for sameOrder()
// may precede it.
bool isOutermost(const AxisOrder& order, int64_t axis, const TensorView& tensor);

// Returns `order` with `axis` moved to the front.
AxisOrder withOutermost(const AxisOrder& order, int64_t axis);

}  // namespace heddle
