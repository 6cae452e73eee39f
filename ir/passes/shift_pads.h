#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Replaces a pad along an axis whose widths contain scalars, but whose sum contains none, as in
// `pad(%x, 0.0, lows=[%i], highs=[-%i])`. Such a pad only shifts elements: the scalar decides no
// size. The widths of a pad are part of a plan, so each value of the scalar would need a plan of
// its own. In the replacement, the scalar is an operand of a kernel:
//
//   %place = sub(iota(sizes=[n], axis=0), %i)
//   where(0 <= %place and %place < size of %x, take(%x, %place, axis=0), 0.0)
//
// The other axes of the pad stay a pad. An op that reads at computed indices needs its operand in
// memory, so a pad of several axes may become several kernels. The pass does not change a pad of an
// f8 tensor, because `where` accepts no f8, nor an axis that the user has sharded.
Fusion shiftPads(Fusion fusion);

}  // namespace heddle
