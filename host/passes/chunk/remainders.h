#pragma once

#include <map>
#include <optional>
#include <string>

#include "host/passes/chunk/overlap_patterns.h"

namespace heddle::host {

// The remainders of a split, such as `h mod 8`. A split is even, so that it may be used, if all its
// remainders are zero at the sizes of a run. The key of a remainder is its text.
using Remainders = std::map<std::string, Size>;

// Returns the remainders of the split `cut` of a match (OverlapMatch of overlap_patterns.h).
//   `units`: the rows of each rank's block are divided into so many units of equal size. A chunk
//     consists of several units (ChunkShares of cost_model.h).
//   `with_front`: the front of the match (OverlapMatch::front) and its gather are split too.
// Returns nullopt if one of the remainders is never zero, or can differ between ranks.
std::optional<Remainders> remaindersOf(const Program& program, const OverlapMatch& match,
                                       const ChunkCut& cut, int64_t units, bool with_front = false);

// Returns the number of rows in one rank's block of a slot: the product of the extents of the split
// axes.
Size rowsOf(const Program& program, const Slot& slot, const ChunkCut& cut);

}  // namespace heddle::host
