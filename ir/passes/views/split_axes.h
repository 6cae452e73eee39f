#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Removes reshapes between expressions that could otherwise be one kernel.
//
// A reshape that splits an axis into parts, or merges parts into an axis, is a view of memory. The
// value that it reads must therefore be stored, which separates kernels. The pass splits the axis
// into the same parts in all values that share the axis through pointwise ops, reductions,
// broadcasts and expands, or through a reshape between kernels that keeps the axis. The reshape
// then changes nothing, and the pass removes it. For example, group_norm
//
//   %a = cast(%x)                       // [n, 256, h]
//   %b = reshape(%a)                    // [n, 32, 8, h]
//   ... normalize %b over [8, h] ...
//   %d = reshape(%c)                    // [n, 256, h]
//   return mul(%d, broadcast(%w))       // %w: [256]
//
// becomes one kernel over [n, 32, 8, h]. The kernel reads views of %x and %w, and the result of the
// fusion is a view of the value that the kernel stores. These views are reshapes of values in
// memory, which move no data.
//
// The pass splits an axis only if all of this is true:
// - The reshape splits or merges exactly one axis, which is not known to have only one element. An
//   expression of a kernel computes the operand of the reshape, and an expression of another kernel
//   reads the result. If the reshape splits the axis, its result is not an output.
// - Each value that shares the axis has the same extent along it, or the extent 1. No extent of
//   these values contains the value of a scalar (`%n`).
// - No value that shares the axis has a sharding, has a required, needed or hinted memory order
//   (Layout in ir/types/tensor.h), or may be stored in another order than row-major, or with
//   gaps.
// - No value that shares the axis is an output that is stored in an input (`return %y in %x`). A
//   view of a split value could not be stored there.
// - No value that shares the axis is an `iota` along it, or the result of a flip, pad, take or
//   take_along_axis.
// - The axis is not a part of another axis that the pass splits, the pass splits none of its parts,
//   and no other reshape splits it into different parts.
// - Neither this reshape, nor a reshape that the pass would insert, turns a broadcast axis
//   (IterKind::Broadcast) into an ordinary axis. If a part has the constant extent 1, no value has
//   a broadcast axis in place of the axis.
Fusion splitAxes(Fusion fusion);

}  // namespace heddle
