#pragma once

#include <map>
#include <optional>
#include <string>

#include "host/passes/chunk/overlap_patterns.h"

namespace heddle::host {

// Sizes that are all zero where a cut is even; by text: each once, in one order.
using Remainders = std::map<std::string, Size>;

// Of every block of the match's tensors, whose rows are so many units (ChunkShares); nullopt where
// no run, or not every rank alike, can have that.
std::optional<Remainders> remaindersOf(const Program& program, const OverlapMatch& match,
                                       const ChunkCut& cut, int64_t units, bool with_front = false);

// Of this axis of the slot, or of all that the cut makes one, on one rank.
Size rowsOf(const Program& program, const Slot& slot, const ChunkCut& cut);

}  // namespace heddle::host
