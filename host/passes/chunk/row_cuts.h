#pragma once

#include <optional>
#include <vector>

#include "host/passes/analysis/slot_uses.h"
#include "host/passes/chunk/overlap_patterns.h"

namespace heddle::host {

// Finds the axes of rows along which an overlap pattern match can be split into chunks. These types
// of host/passes/chunk/overlap_patterns.h are used:
//   OverlapMatch         a collective and the matrix products next to it; its front
//                        (OverlapMatch::front) computes the rows that these matrix products read
//   ChunkStage           the matrix products and the kernel of a match or of a front
//   ChunkCut             the axes of one split; a flat split (ChunkCut::isFlat()) splits several
//                        axes as one axis
//   Communicate          the instruction that posts a collective (host/program)

// Returns all possible splits of a match. The members products, kernel and order of the match must
// be filled in. The split that divides the most sizes is the first. Returns an empty list if no
// axis of rows is outermost in memory.
std::vector<ChunkCut> cutsOf(const Program& program, const std::vector<SlotUses>& uses,
                             const OverlapMatch& match);

// Returns whether the front of a match can be split in the same way as the match. Returns false if
// the match has no front. For a flat split, the rows must be contiguous in every tensor that the
// front reads.
bool frontTakes(const Program& program, const std::vector<SlotUses>& uses,
                const OverlapMatch& match, const ChunkCut& cut);

// Returns the axis that a collective gathers or scatters. Its input and its output have different
// numbers of blocks along this axis. Returns nullopt if no axis or several axes differ.
std::optional<size_t> movedAxis(const Program& program, const Communicate& x);

// Returns the operands of a stage's kernel that have rows and that the stage itself does not
// compute. Each of them is in memory in full, so its chunks are views.
std::vector<SlotId> kernelViews(const Program& program, const ChunkStage& stage);

}  // namespace heddle::host
