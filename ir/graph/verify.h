#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Checks that a fusion is legal, between passes. Throws InternalError with the value or expression,
// unless all of these hold:
//  - ids are in range and in SSA order
//  - each value has one definition and a unique name
//  - attributes have the types of the op
//  - shapes and dtypes follow the rules of the op
//  - a sharding uses axes of its mesh, each at most once
//  - layouts are permutations of the axes
//  - no annotation is stale
void verify(const Fusion& fusion);

// Throws UserError if a size of the fusion uses a symbol of host programs: `rank`, `ranks` or
// `@m.x`. A fusion must mean the same in every job and on every rank.
void checkSizeSymbols(const Fusion& fusion);

}  // namespace heddle
