#pragma once

#include <optional>

#include "ir/graph/fusion.h"

namespace heddle {

struct ReshardStep;

// Returns the order of the axes of a value in memory, outermost axis first, as far as it is known
// before a run:
//  - The result of a kernel, library call or collective has the order TensorView::allocationOrder()
//    (ir/types/tensor.h).
//  - An input has its observed order (Layout::observed). Without an observed layout the order is
//    row-major.
//  - A permuted view has the order of its base (baseOf()), with the axes permuted. The result of a
//    reshape is row-major, or has a hinted order if the reshape is a view in this order.
//  - The result is nullopt if there may be gaps between the elements. This is the case for a slice,
//    a diagonal, a shard that is a view of a replicated tensor, and an input that was observed with
//    gaps. The result of an all-to-all has gaps if hasGaps() is true.
// Two kinds of padding do not count as gaps:
//  - The padding at the end of a shard, if the devices do not divide the axis evenly.
//  - The padding after the last element of the outermost axis. It exists if a collective wrote the
//    value, or reads it, in blocks of equal size.
std::optional<AxisOrder> elementOrder(const Fusion& fusion, ValueId id);

// Returns elementOrder() of all tensors of the fusion. Takes linear time even for a chain of
// permutes, where elementOrder() of each value would follow the chain again.
IdVector<ValueId, std::optional<AxisOrder>> elementOrders(const Fusion& fusion);

// Returns elementOrder(), or nullopt if the value is the result of a collective. The memory of this
// result is padded for the collective that wrote it, and the next collective may need padding of a
// different size.
std::optional<AxisOrder> memoryOrder(const Fusion& fusion, ValueId id);

// Returns whether the result `to` of an all-to-all has gaps. Returns false for every other step.
// The kernel after an all-to-all pads each of the joined blocks. The padding becomes gaps if the
// blocks are uneven and the joined axis is not the outermost axis in memory.
bool hasGaps(const ReshardStep& step, const Sharding& from, const TensorView& to);

// Returns the value of which `id` is a permuted view, or `id` if it is no permuted view. The memory
// order of either value determines the memory order of the other value.
ValueId baseOf(const Fusion& fusion, ValueId id);

// Returns whether two orders are equal for this tensor. The comparison ignores broadcast axes. If
// the tensor has no sharding, it also ignores ordinary axes of one element. If the tensor has a
// sharding, ordinary axes of one element count, because they may be padded.
bool sameOrder(const AxisOrder& a, const AxisOrder& b, const TensorView& tensor);

// Returns whether `axis` is the outermost axis in `order`. Axes that sameOrder() ignores may
// precede it.
bool isOutermost(const AxisOrder& order, int64_t axis, const TensorView& tensor);

// Returns `order` with `axis` moved to the outermost position.
AxisOrder withOutermost(const AxisOrder& order, int64_t axis);

}  // namespace heddle
