#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Legality of a Fusion between passes. InternalError naming the value or expression: ids in range,
// SSA order, one definition each, names unique, attributes of the op's types, shapes and dtypes as
// the op's rules give them, shardings within their mesh, no mesh axis used twice, layouts
// permutations, no stale annotation.
void verify(const Fusion& fusion);

// UserError where a size of the fusion is made of what only host programs know: `rank`, `ranks`,
// `@m.x`. A fusion means the same in every job and on every rank.
void checkSizeSymbols(const Fusion& fusion);

}  // namespace heddle
