#pragma once

#include <optional>

#include "ir/graph/fusion.h"

namespace heddle {

// Returns the order of the elements of a value in memory, outermost axis first, as it is known
// before a run.
//  - A result of a kernel, library call or collective has its required order. Without one it has
//    its hinted order, and without a hint row-major order.
//  - An input has its observed order, or row-major order if it has no observed layout.
//  - nullopt means that the elements have gaps. This is the case for the result of a slice, a shard
//    that is a view of a replicated tensor, an input that was observed with gaps, and the result of
//    an all-to-all whose padded blocks are not outermost.
// The memory may have padding at the end of each uneven shard. If a collective wrote or reads
// blocks of equal size, there may also be padding after the last element of the outermost axis.
std::optional<AxisOrder> elementOrder(const Fusion& fusion, ValueId id);

// Does the same as elementOrder(), but also returns nullopt for the result of a collective. The
// memory of this result is padded for that collective, and the next collective may need other
// padding.
std::optional<AxisOrder> memoryOrder(const Fusion& fusion, ValueId id);

// If `id` is a permuted view of another value, returns that value, else `id`. The memory order of
// each of the two determines the memory order of the other.
ValueId baseOf(const Fusion& fusion, ValueId id);

// Returns whether two orders are equal for this tensor. Axes of one element do not count, unless
// they may be padded. In a tensor with a sharding, every axis that is not a broadcast axis may be
// padded.
bool sameOrder(const AxisOrder& a, const AxisOrder& b, const TensorView& tensor);

// Returns whether the axis is the outermost one in `order`. Axes that do not count for sameOrder()
// may precede it.
bool isOutermost(const AxisOrder& order, int64_t axis, const TensorView& tensor);

// Returns `order` with `axis` moved to the front.
AxisOrder withOutermost(const AxisOrder& order, int64_t axis);

}  // namespace heddle
