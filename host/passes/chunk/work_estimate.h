#pragma once

#include "host/passes/chunk_cost.h"
#include "host/passes/chunk_sites.h"
#include "host/passes/nominal_sizes.h"

namespace heddle::host {

// What a site costs at nominal sizes, for chunkedSeconds().
ChunkedWork chunkedWork(const Program& program, const NominalSizes& sizes, const ChunkSite& site,
                        const ChunkCut& cut);
// With its front, and the gather before that.
ChunkedWork chainedWork(const Program& program, const NominalSizes& sizes, const ChunkSite& site,
                        const ChunkCut& cut);
// The front alone, whole.
ChunkedWork frontWork(const Program& program, const NominalSizes& sizes, const ChunkSite& site);

}  // namespace heddle::host
