#pragma once

#include <map>
#include <optional>
#include <string>

#include "host/passes/chunk/overlap_patterns.h"

namespace heddle::host {

// Remainders say whether tensors divide into chunks of rows for the sizes of a run. A remainder is
// a size expression that is never negative, such as `h mod 8`. A split program may run only if all
// its remainders are zero.
// The key of the map is the text of the expression.
using Remainders = std::map<std::string, Size>;

// Returns the remainders of a split. `match` is a collective and the matrix products next to it;
// `cut` gives the axes along which they are split (both in overlap_patterns.h).
//   units       number of units of equal size into which the rows of each rank's block are divided.
//               A chunk consists of one or more units (ChunkShares of cost_model.h).
//   with_front  true: the stage before the match (OverlapMatch::front) and its gather are split too
// Returns nullopt if a remainder is a constant other than zero, or if a remainder can differ
// between ranks.
std::optional<Remainders> remaindersOf(const Program& program, const OverlapMatch& match,
                                       const ChunkCut& cut, int64_t units, bool with_front = false);

// Returns the length that `cut` divides in one rank's block of a slot: the product of the extents
// of the split axes. For a flat split, this is the number of rows of the block.
Size rowsOf(const Program& program, const Slot& slot, const ChunkCut& cut);

}  // namespace heddle::host
