#pragma once

#include <optional>
#include <vector>

#include "host/passes/analysis/slot_uses.h"
#include "host/passes/chunk/overlap_patterns.h"

namespace heddle::host {

// Returns the possible splits of a match whose matrix products, kernel and order are known. The one
// that divides most sizes is first. Returns none if no rows are outermost in memory.
std::vector<ChunkCut> cutsOf(const Program& program, const std::vector<SlotUses>& uses,
                             const OverlapMatch& match);

// Whether the front can be split with the match. A flat split requires contiguous rows in all
// tensors that the front reads.
bool frontTakes(const Program& program, const OverlapMatch& match, const ChunkCut& cut);

// Returns the axis with different sharding on the two sides; nullopt if there is none or if there
// are several.
std::optional<size_t> movedAxis(const Program& program, const Communicate& x);

// Returns the operands of the stage's kernel that have rows and exist unsplit. Chunks of them are
// views.
std::vector<SlotId> kernelViews(const Program& program, const ChunkStage& stage);

}  // namespace heddle::host
