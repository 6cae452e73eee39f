#pragma once

#include "host/passes/analysis/nominal_sizes.h"
#include "host/passes/chunk/cost_model.h"
#include "host/passes/chunk/overlap_patterns.h"

namespace heddle::host {

// Estimates the work of a match at nominal sizes (host/passes/analysis/nominal_sizes.h). A match is
// a collective and the matrix products next to it (OverlapMatch of overlap_patterns.h).
// chunkedSeconds() of cost_model.h converts the work into seconds.

// Returns the work of a match that is split into chunks along `cut`.
ChunkedWork chunkedWork(const Program& program, const NominalSizes& sizes,
                        const OverlapMatch& match, const ChunkCut& cut);
// Returns the work of a match together with its front. The front is the stage that computes the
// rows that the match reads (OverlapMatch::front). The result includes the gather before the front.
ChunkedWork chainedWork(const Program& program, const NominalSizes& sizes,
                        const OverlapMatch& match, const ChunkCut& cut);
// Returns the work of the unsplit front alone, without the gather.
ChunkedWork frontWork(const Program& program, const NominalSizes& sizes, const OverlapMatch& match);

}  // namespace heddle::host
