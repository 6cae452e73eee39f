#pragma once

#include <optional>

#include "ir/graph/fusion.h"

namespace heddle {

struct ReshardStep;

// Returns the layout of a value in memory, as far as it is known before a run. The layout is the
// order of the axes, outermost first, and for each axis whether gaps separate its elements. Rules:
//  - The result of a kernel, library call, copy or collective has the order
//    TensorView::allocationOrder() (ir/types/tensor.h) and no gaps. Exception: an all-to-all, see
//    the last rule.
//  - An input has its observed layout (Layout::observed). Without one it is row-major.
//  - The layout of a permute, slice or reshape follows from the layout of the operand, because the
//    result is a view. Exception: a reshape for which isReshapeView() is false reads a copy, and is
//    row-major.
//  - The layout of these values is unknown (nullopt): a diagonal, a shard that is a view
//    (ReshardStep::Kind::Slice in ir/analysis/reshard_step.h), and the result of an all-to-all for
//    which hasGaps() is true. The layout of a permute or slice of such a value is unknown too. A
//    reshape of such a value counts as row-major.
// Two kinds of padding do not count as gaps:
//  - The padding at the end of a shard, if the devices do not divide the axis evenly.
//  - The padding after the last element of the outermost axis. It exists if a collective wrote the
//    value, or reads it, in blocks of equal size.
std::optional<Layout::Observed> elementLayout(const Fusion& fusion, ValueId id);

// The layouts of all tensors of a fusion. elementLayouts() takes linear time even for a chain of
// views. elementLayout() of each value would follow the chain again.
using ElementLayouts = IdVector<ValueId, std::optional<Layout::Observed>>;
ElementLayouts elementLayouts(const Fusion& fusion);
// Returns elementLayout() of one value. If the value is a view, `layouts` must contain the layout
// of its operand.
std::optional<Layout::Observed> elementLayout(const Fusion& fusion, ValueId id,
                                              const ElementLayouts& layouts);

// Returns the layout of the result of `view`, which is a permute, slice or reshape. `operand` is
// the layout of its operand.
Layout::Observed layoutOfView(const Fusion& fusion, const Expression& view,
                              const Layout::Observed& operand);

// Returns whether the reshape is a view if its operand has the layout `operand`. This is the case
// if the operand is row-major without gaps. It is also the case if the reshape splits and merges no
// sharded axis, and the axes that it merges are neighbours in memory without gaps between them
// (reshapeInMemory() in ir/analysis/reshape_order.h).
bool isReshapeView(const Fusion& fusion, const Expression& reshape,
                   const Layout::Observed& operand);

// Returns the order of the layout, or nullopt if there are gaps or the layout is unknown.
std::optional<AxisOrder> orderWithoutGaps(const std::optional<Layout::Observed>& layout);

// Returns orderWithoutGaps() of elementLayout().
std::optional<AxisOrder> elementOrder(const Fusion& fusion, ValueId id);

// Returns elementOrder(), or nullopt if the value is the result of a collective, or a permuted view
// of such a result. The memory of such a result may be padded for the collective that wrote it. The
// next collective may need padding of a different size, so it reads a copy.
std::optional<AxisOrder> memoryOrder(const Fusion& fusion, ValueId id);

// Returns whether the result `to` of an all-to-all has gaps. `from` is the sharding of its operand.
// Returns false for every other step. An all-to-all transfers blocks of equal size. If the joined
// blocks may be uneven, they are therefore padded. The padding becomes gaps if the joined axis is
// not the outermost axis in memory.
bool hasGaps(const ReshardStep& step, const Sharding& from, const TensorView& to);

// Returns the value of which `id` is a permuted view, or `id` if it is no permuted view. A permuted
// view is the result of one or several permutes. The memory order of either value determines the
// memory order of the other value.
ValueId baseOf(const Fusion& fusion, ValueId id);

// Returns the value of which `id` is a view, possibly a view of a view, or `id` if it is no view.
// Here permutes, slices and reshapes count as views. If the memory order of the returned value
// changes, the memory order of `id` may change too.
ValueId viewedValueOf(const Fusion& fusion, ValueId id);

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
