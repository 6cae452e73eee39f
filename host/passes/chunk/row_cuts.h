#pragma once

#include <optional>
#include <vector>

#include "host/passes/analysis/slot_uses.h"
#include "host/passes/chunk/overlap_patterns.h"

namespace heddle::host {

// Finds the axes along which a matrix product and the collective next to it can be split into
// chunks of rows. The types are defined in host/passes/chunk/overlap_patterns.h:
//   OverlapMatch         a match: a collective and the matrix products next to it
//   OverlapMatch::front  the stage that computes the rows that the matrix products of a match read
//   ChunkStage           the matrix products and the kernel of a match or of a front
//   ChunkCut             the axes of one split. A flat split (ChunkCut::isFlat()) splits several
//                        axes as if they were one axis.
// An axis of rows is any axis of a tensor except the last.

// Returns all possible splits of a match. All members of the match except `wait`, `team`, `cuts`,
// `front` and `gather` must be set. If there is a flat split, it is the first element, because runs
// of more sizes can use it than any other split: it requires no axis to have extent 1, and only the
// number of all rows must divide into chunks. Returns an empty list if there is no possible split,
// for example because the last axis of the collective's tensors is outermost in memory.
std::vector<ChunkCut> cutsOf(const Program& program, const IdVector<SlotId, SlotUses>& uses,
                             const OverlapMatch& match);

// Returns whether the front of a match can be split along the axes of `cut`, which is a split of
// the match. Returns false if the match has no front.
bool frontTakes(const Program& program, const IdVector<SlotId, SlotUses>& uses,
                const OverlapMatch& match, const ChunkCut& cut);

// Returns the axis that a collective gathers or scatters: the axis along which the shardings of its
// input and its output have different numbers of blocks. Returns nullopt if there is no such axis
// or more than one, or if input and output differ in the number of axes.
std::optional<size_t> movedAxis(const Program& program, const Communicate& x);

// Returns the operands of a stage's kernel that have rows (ChunkStage::kernel_rows) and that chunks
// do not replace (ChunkStage::allocates). Each of them is an unsplit tensor in memory, and its
// chunks are views of this tensor.
std::vector<SlotId> kernelViews(const Program& program, const ChunkStage& stage);

}  // namespace heddle::host
