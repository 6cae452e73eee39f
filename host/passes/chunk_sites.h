#pragma once

#include <optional>
#include <vector>

#include "host/program.h"

namespace heddle::host {

// A collective and the products it can be chunked with. Positions are of Program::body.
struct ChunkSite {
  comm::CollectiveKind kind;  // Allgather, ReduceScatter, Allreduce
  size_t allocate;            // of the tensor between product and collective
  size_t post;
  size_t wait;
  std::vector<size_t> products;  // Allgather: one or more that read it; else the one that makes it
  int64_t team;                  // devices
};

// In program order; no instruction is in two of them. None where somebody has ordered streams by
// hand already.
std::vector<ChunkSite> findChunkSites(const Program& program);

}  // namespace heddle::host
