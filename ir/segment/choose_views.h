#pragma once

#include <set>
#include <string>
#include <vector>

#include "ir/segment/segment.h"

namespace heddle {

// The broadcasts and expands of a fusion that are views.
struct ChosenViews {
  std::set<ExprId> exprs;
  std::vector<std::string> notes;  // for each expand that a kernel stores: the value and the reason
};

// Chooses which broadcasts and expands are views of memory. Kernels compute all others. A broadcast
// only adds axes of size 1. An expand repeats elements along axes, and its view has the stride 0
// along these axes.
//
// In `segmented`, the broadcasts and expands in `chosen` are views, and kernels compute all others.
// The returned ChosenViews::exprs contains `chosen`, and each broadcast or expand for which all of
// this is true:
// - The kernel that computes the broadcast or expand stores its result (below: the result).
//   (Otherwise the result is in registers, and a view would save nothing.)
// - One of these is true: The operand is an input of the kernel, directly or through other
//   broadcasts and expands of the kernel, which then also become views. Or the kernel computes the
//   operand, and no other expression of the kernel reads the result. In the second case, the kernel
//   stores the operand instead of the result.
// - A broadcast of an operand that the kernel computes is a view only if the kernel stores the
//   operand in any case. A broadcast repeats no elements, so it would save no memory to store the
//   operand instead.
// - The user requires no memory order for the result or for a view of it.
// - No collective, and no library call, reads the result or a view of it. Both need dense memory.
// - Each reshape that is a view of the result in `segmented`, directly or through other views, can
//   remain a view. A reshape cannot remain a view if it splits or merges both an axis that repeats
//   elements and an axis that does not (axes of size 1 do not count).
ChosenViews chooseViews(const SegmentedFusion& segmented, const std::set<ExprId>& chosen);

}  // namespace heddle
