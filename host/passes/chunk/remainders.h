#pragma once

#include <map>
#include <optional>
#include <string>

#include "host/passes/chunk/overlap_patterns.h"

namespace heddle::host {

// Sizes that are all zero if a split is even. Each occurs once; they are ordered by their text.
using Remainders = std::map<std::string, Size>;

// Returns the remainders of splitting the rows of each block of the match into `units` units
// (ChunkShares). Returns nullopt if they are never zero, or if they can differ between ranks.
std::optional<Remainders> remaindersOf(const Program& program, const OverlapMatch& match,
                                       const ChunkCut& cut, int64_t units, bool with_front = false);

// Returns the number of rows of the slot along the split axes, on one rank.
Size rowsOf(const Program& program, const Slot& slot, const ChunkCut& cut);

}  // namespace heddle::host
