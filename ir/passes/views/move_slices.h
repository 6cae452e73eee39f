#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Removes slices and flips between expressions that could otherwise be one kernel.
//
// A slice is a view of memory, and a flip reads its operand at computed indices. The value that
// they read must therefore be stored, which separates kernels. This pass computes only the elements
// that the slice or flip selects, from slices or flips of values in memory. For example,
//
//   %a = relu(%x)
//   %b = slice_axis(%a, axis=0, start=0, stop=8)
//   %c = neg(%b)
//
// becomes
//
//   %x_sliced = slice_axis(%x, axis=0, start=0, stop=8)
//   %b = relu(%x_sliced)
//   %c = neg(%b)
//
// The relu and the neg are one kernel, which reads a view of %x.
//
// The pass moves a slice or flip if all of this is true. The *moved values* are its operand and all
// values that a kernel computes for it, back to values in memory.
// - A pointwise op, reduction, broadcast or expand reads the result. The bounds of a slice contain
//   no scalar (`%n`).
// - Each moved value is the result of a pointwise op. There are at most 256.
// - Each other value that these ops read is in memory: an input, or the result of a matrix product,
//   a view and so on.
// - Slices and flips read only the last moved value, their operand. If there are several, they are
//   slices that have no element in common, so that no element is computed twice. Only moved values
//   read the other moved values. No expression reads the size of a moved value.
// - No moved value is an output, has a sharding, or has a memory order that is required or needed.
//   The result of the slice or flip may be an output.
Fusion moveSlices(Fusion fusion);

}  // namespace heddle
