#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Replaces a pad along an axis if the low width contains a scalar, but the sum of the low and high
// width contains none. An example is `pad(%x, 0.0, lows=[%i], highs=[-%i])`. Such a pad only shifts
// elements: no size depends on the scalar. The widths of a pad are part of a plan, so each value of
// the scalar would need a separate plan. In the replacement, the scalar is an operand of a kernel:
//
//   %place = sub(iota(sizes=[n], axis=0), %i)
//   where(0 <= %place and %place < size of %x, take(%x, %place, axis=0), 0.0)
//
// Every element keeps its bits, so -0.0 stays -0.0. If the widths of other axes are not 0, a pad
// along these axes remains. The take needs its operand in memory. A pad that shifts several axes
// becomes one take per axis, and therefore possibly several kernels. The pass does not replace
// these pads (the conditions on widths and shardings apply to each axis separately):
// - A pad of an f8 tensor, because `where` accepts no f8.
// - A pad along an axis that is sharded, or that propagateSharding may shard. A take along a
//   sharded axis would sum the results of all ranks, but a pad needs only an allgather.
// - A pad whose low width contains a division, a remainder, an open size (given(a, b) in
//   ir/base/size_symbols.h), or a min or max of operands that may overflow.
// - A pad whose low width has more than 64 operators and operands.
// - A pad whose low width may overflow 64 bits to a small number, as `%i * %i` with an i64 %i. A
//   run checks the width of a pad for overflow, and the error names the pad. A kernel would use the
//   wrong width without an error.
//
// A pad with the low width `%i + 1` is replaced, although this sum may overflow too. The overflowed
// number is negative, but so far from 0 that it shifts all elements out of the result, as the exact
// width does.
Fusion shiftPads(Fusion fusion);

}  // namespace heddle
