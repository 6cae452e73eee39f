#pragma once

#include <map>
#include <optional>
#include <vector>

#include "host/program/program.h"

namespace heddle::host {

// Returns the allocations that can have the layouts of the caller's preallocated outputs, so that
// the program writes these outputs without a copy. The map contains the slot of each such
// Allocate, with the sizes, strides and allocated sizes that its tensor must have. Conditions:
//  - The output is the slot, or a view of it that at most permutes the axes. It is not declared
//    `in` an input (Program::reuses).
//  - One Allocate at the top level of the program defines the slot. Its views have one definition
//    each.
//  - No instruction needs the layout that the type of the slot, or of a view of it, states
//    (needsLayout() in host/program/layout_needs.h). A memory order in Layout::hint does not
//    prevent the direct write.
//  - The user requires no memory order of the slot or of its views. A required order of the output
//    itself is allowed, because the plan checks it.
//  - The caller's tensor has the number of axes of the output, and its elements do not overlap
//    each other.
// If two outputs are views of one slot, the first output decides.
std::map<SlotId, TensorDesc> preallocatedLayouts(
    const Program& program, const std::vector<std::optional<TensorDesc>>& preallocated);

}  // namespace heddle::host
