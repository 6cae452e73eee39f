#pragma once

#include <optional>

#include "ir/graph/fusion.h"

namespace heddle {

// The order in which the elements of a value lie in memory, as far as it is known before a run;
// nullopt for a cut-out (slice, a shard of a whole tensor) and for an input observed with gaps. An
// input with no observed layout counts as row-major. Results of kernels, libraries and collectives
// lie as required, else as hinted, else row-major. They may be padded: at the end of each uneven
// shard, and, where a collective wrote or reads blocks of equal size, behind the outermost axis.
std::optional<AxisOrder> elementOrder(const Fusion& fusion, ValueId id);

// The same where the allocation is that of the value's own shards: nullopt also for what a
// collective wrote, which is padded as that one needed and not as the next would.
std::optional<AxisOrder> memoryOrder(const Fusion& fusion, ValueId id);

// The value itself, or what it is a permuted view of: the order of one decides that of the other.
ValueId baseOf(const Fusion& fusion, ValueId id);

// Whether two orders place the elements of the tensor alike: axes of one element do not count, but
// for those that may be padded (any but broadcast axes, in a tensor with a sharding).
bool sameOrder(const AxisOrder& a, const AxisOrder& b, const TensorView& tensor);

// Whether the axis is the outermost in `order`, axes that do not count aside.
bool isOutermost(const AxisOrder& order, int64_t axis, const TensorView& tensor);

// `axis` first, the rest of `order` after it.
AxisOrder withOutermost(const AxisOrder& order, int64_t axis);

}  // namespace heddle
