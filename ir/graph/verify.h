#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Checks between passes that a fusion is legal. Throws InternalError with the value or expression
// if one of these conditions does not hold:
//  - ids are in range, and each value is defined before it is read (SSA order)
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
