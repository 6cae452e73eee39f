#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Removes slices, flips, pads and cats between expressions that could otherwise be one kernel.
//
// A slice is a view of memory. A flip or pad reads its operand at computed indices, and so do the
// pads or takes of a cat (ir/cats/cat.h). The value that they read must therefore be stored, which
// separates kernels. These expressions are *picks* (ir/passes/views/pick.h). This pass picks the
// elements of values in memory instead, and then computes only with these elements. For example,
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
// The relu and the neg are one kernel, which reads a view of %x. A pad of %a becomes
//
//   %x_padded = pad(%x, 0)
//   %a_2 = relu(%x_padded)
//   %b = where(<the element is inside>, %a_2, <the fill value>)
//
// A pad of a cat needs no such `where`, because the cat selects the elements that are inside.
//
// The *moved values* are the operand of the pick and all values that a kernel computes for it, back
// to values along whose axes the pick changes nothing. An example of such a value is the mean of
// each row, if the pick changes only the position in the row. These values stay as they are. The
// pass moves a pick if all of this is true:
// - A slice: an expression of a kernel, a flip or a pad reads the result.
// - A pad or take of a cat: an expression of a kernel reads the cat, and all pieces that a kernel
//   computes can be moved. There are at most four such pieces. The kernel computes all pieces for
//   each element of the cat, so at most four expensive ops compute them. An op is expensive if its
//   kernel text has a function call or a division. If no kernel reads the cat, the kernels of the
//   pieces write directly into it (ir/segment/choose_cats.h).
// - At most eight picks read the last moved value.
// - There are at most 256 moved values, the results of pointwise ops, broadcasts and reductions.
// - Reductions move only if exactly one pick, a slice or flip, reads the last moved value.
// - Each other value that these expressions read is in memory, or stays as it is.
// - No moved value, and no result of the pick, has a sharding or a required memory order.
// - No element of a moved value is computed twice: no other expression reads a moved value, and the
//   fusion does not return it. If several picks read the last moved value, they are slices that
//   have no element in common. Exception: elements are computed again if this is cheap. At most 16
//   ops then compute the moved values, none of them is expensive, and at most one value in memory
//   that they read has all axes. This value has at most as many bytes per element as the last moved
//   value.
Fusion movePicks(Fusion fusion);

}  // namespace heddle
