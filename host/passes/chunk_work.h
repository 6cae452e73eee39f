#pragma once

#include "host/passes/chunk_cost.h"
#include "host/passes/chunk_sites.h"
#include "host/passes/nominal_sizes.h"

namespace heddle::host {

// What a site costs at nominal sizes, for chunkedSeconds().
ChunkedWork chunkedWork(const Program& program, const NominalSizes& sizes, const ChunkSite& site,
                        const ChunkCut& cut);

}  // namespace heddle::host
