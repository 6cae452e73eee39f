#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Removes permutes between expressions that could otherwise be one kernel.
//
// A permute is a view of memory. The value that it reads must therefore be stored, which separates
// kernels. This pass computes such a value with permuted axes from the start, so that only values
// in memory are permuted. For example,
//
//   %a = relu(%x)
//   %b = permute(%a, axes=[1, 0])
//   %c = neg(%b)
//
// becomes
//
//   %x_permuted = permute(%x, axes=[1, 0])
//   %b = relu(%x_permuted)
//   %c = neg(%b)
//
// The relu and the neg are one kernel, which reads a view of %x.
//
// The pass moves a permute if all of this is true. The *moved values* are the operand of the
// permute and all values that a kernel computes for it, back to values in memory.
// - A pointwise op, reduction, broadcast or expand reads the result of the permute.
// - Each moved value is the result of a pointwise op, a reduction, a broadcast, a full, an expand
//   that keeps the number of axes, or a permute of a moved value. There are at most 256.
// - Each other value that the ops of the moved values read is in memory: an input, or the result of
//   a matrix product, a view and so on.
// - No other expression reads a moved value, except for its size, and no moved value is an output.
//   All expressions that read a moved value need the same order of its axes.
// - No moved value has a sharding, or a memory order that is required or needed. The same holds for
//   the result of the permute.
Fusion movePermutes(const Fusion& fusion);

}  // namespace heddle
