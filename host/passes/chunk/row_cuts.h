#pragma once

#include <optional>
#include <vector>

#include "host/passes/analysis/slot_uses.h"
#include "host/passes/chunk/overlap_patterns.h"

namespace heddle::host {

// Of a match whose products, kernel and order are known; the one that divides most sizes first,
// none where no rows are outermost in memory.
std::vector<ChunkCut> cutsOf(const Program& program, const std::vector<SlotUses>& uses,
                             const OverlapMatch& match);

// Whether the front can be cut along with the match: of a cut of all rows as one axis, if they lie
// behind each other in all that it reads.
bool frontTakes(const Program& program, const OverlapMatch& match, const ChunkCut& cut);

// The axis that is spread differently on the two sides; nullopt for none or several.
std::optional<size_t> movedAxis(const Program& program, const Communicate& x);

// The kernel's operands with rows that are whole before it: chunks of them are views.
std::vector<SlotId> kernelViews(const Program& program, const ChunkStage& stage);

}  // namespace heddle::host
