#pragma once

#include "host/passes/analysis/nominal_sizes.h"
#include "host/passes/chunk/cost_model.h"
#include "host/passes/chunk/overlap_patterns.h"

namespace heddle::host {

// Returns the work of a match at nominal sizes, for chunkedSeconds().
ChunkedWork chunkedWork(const Program& program, const NominalSizes& sizes,
                        const OverlapMatch& match, const ChunkCut& cut);
// Returns the work of a match with its front, and with the gather before the front.
ChunkedWork chainedWork(const Program& program, const NominalSizes& sizes,
                        const OverlapMatch& match, const ChunkCut& cut);
// Returns the work of the front alone, unsplit.
ChunkedWork frontWork(const Program& program, const NominalSizes& sizes, const OverlapMatch& match);

}  // namespace heddle::host
