#pragma once

#include "ir/base/size.h"
#include "ir/graph/fusion.h"

namespace heddle {

// Checks that a fusion is valid. Pipelines call it between passes. Throws InternalError, which
// names the value or expression, if one of these conditions is false:
//  - ids are in range, and each value is defined before it is read (SSA order)
//  - each value has one definition and a unique name
//  - attributes have the types that the op table (ir/ops/op.h) states
//  - shapes and dtypes follow the rules of the op
//  - a sharding uses axes of its mesh, each at most once
//  - layouts are permutations of the axes
//  - no annotation contains the id of a value that does not exist
void verify(const Fusion& fusion);

// Throws UserError if a size of the fusion uses a symbol of host programs: `rank`, `ranks` or
// `@m.x`. The reason: a fusion must compute the same in every job and on every rank.
void checkSizeSymbols(const Fusion& fusion);

// Evaluates every extent of which all symbols have a value. Throws UserError, with the name and the
// line of the value, if an extent overflows or divides by zero.
void checkSizes(const Fusion& fusion, const SizeBindings& sizes);

}  // namespace heddle
