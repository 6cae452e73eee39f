#pragma once

#include <cstddef>

#include "ir/graph/fusion.h"

namespace heddle {

// Helpers of the passes movePermutes and movePicks, which change the values that a kernel computes
// so that only values in memory are permuted, sliced, flipped or padded.

// The most values that one permute or pick (ir/passes/views/pick.h) may move.
inline constexpr size_t kMostMoved = 256;

// Returns whether a kernel computes an expression of this kind, and movePermutes may change the
// order of its axes. A permute moves only if such an expression reads it.
inline bool isKernelOp(OpKind kind) {
  return kind == OpKind::Pointwise || kind == OpKind::Reduction || kind == OpKind::Broadcast ||
         kind == OpKind::Expand || kind == OpKind::Full;
}

// Returns whether a kernel may compute an expression of this kind. Results of all other expressions
// are in memory.
inline bool mayBeInKernel(OpKind kind) {
  return isKernelOp(kind) || kind == OpKind::Iota || kind == OpKind::Index || kind == OpKind::Set;
}

// Returns whether the passes may give the value other axes: it has no sharding, and no memory order
// that is required or needed.
inline bool isFreeOfOrders(const TensorView& tensor) {
  return !tensor.sharding && !tensor.hasFixedOrder();
}

}  // namespace heddle
