#pragma once

#include "host/passes/analysis/nominal_sizes.h"
#include "host/passes/chunk/cost_model.h"
#include "host/passes/chunk/overlap_patterns.h"

namespace heddle::host {

// What a match costs at nominal sizes, for chunkedSeconds().
ChunkedWork chunkedWork(const Program& program, const NominalSizes& sizes,
                        const OverlapMatch& match, const ChunkCut& cut);
// With its front, and the gather before that.
ChunkedWork chainedWork(const Program& program, const NominalSizes& sizes,
                        const OverlapMatch& match, const ChunkCut& cut);
// The front alone, whole.
ChunkedWork frontWork(const Program& program, const NominalSizes& sizes, const OverlapMatch& match);

}  // namespace heddle::host
