#pragma once

#include <cstdint>
#include <vector>

#include "comm/communicator.h"

namespace heddle::host {

// The work of a collective and of the matrix products next to it, on one device. The choice of
// chunks depends on nothing else.
struct ChunkedWork {
  double flops = 0;        // of the matrix products
  double bytes = 0;        // that the device sends in the collective
  bool half_rate = false;  // types of four bytes or more: CostConstants::full_flops applies
  int64_t calls = 1;       // library calls per chunk: the matrix products that read one gathered
                           // tensor, times the batches that do not fit one call
  bool reduces = false;    // a reduce-scatter or allreduce
  double moved = 0;        // bytes that the kernel of the match reads and writes
  double rows = 0;         // of one matrix of the unsplit matrix product; 0: all tiles are full
  bool returns = false;    // an allreduce: half of the bytes carry the sums back
  // Bytes that the device receives in the gather before the two stages of a chunk.
  double gathered = 0;
  bool two_stages = false;  // two matrix products, one after the other
  double buffer = 0;        // bytes of the longer side of the collective
};

// The lengths of the chunks in order, in units of equal numbers of rows. {1} is unsplit.
using ChunkShares = std::vector<int64_t>;
int64_t unitsOf(const ChunkShares& shares);
ChunkShares equalShares(int64_t chunks);

// Returns the seconds of the unsplit matrix products and the kernel without the collective.
double productSeconds(const ChunkedWork& work);

// Returns the splits that the pass tries if the user requests none:
//   equal chunks
//   growing chunks, for gathers: no matrix product hides the first gather
//   shrinking chunks, for reductions: no matrix product hides the last reduction
//   chunks with a short first and last one, for reductions: slow links start early
// If each of 8 equal chunks of an allreduce fits into one piece of a copy channel, splits with
// longer chunks are left out. A chunk of several pieces waits for an SM once per piece before its
// sums are sent back.
std::vector<ChunkShares> sharesFor(const ChunkedWork& work);

// Returns the predicted seconds of these chunks. The communication of a chunk runs beside the
// matrix product of another one (host/passes/chunk/overlap_model.h). The costs to launch and to
// start each chunk are included. A partly filled tile costs as much as a full one. The rates are
// those of host/passes/chunk/cost_constants.h.
double chunkedSeconds(const ChunkedWork& work, const ChunkShares& shares);

// Returns Communicate::carrier of a chunk.
//   No matrix product runs beside the first chunk of a gather and the last chunk of a reduction.
//     They have no limit of thread blocks and no copy channel.
//   All other chunks use a copy channel. Without one, NCCL moves them with few thread blocks.
//     The number of blocks is equal for all kinds, so that they can share copy channels.
//   Reductions alternate between two copy channels: while one chunk waits for an SM, the next one
//     is copied. Gathers use one copy channel, because parallel copies would share the links and
//     all arrive later.
//   `gathers_too`: the same chunks are gathered before. The reductions use other copy channels.
comm::Carrier chunkCarrier(comm::CollectiveKind kind, int64_t chunk, int64_t chunks,
                           bool gathers_too = false);

// Returns the cheapest of `allowed`, which is in order of the number of chunks and contains {1}. A
// longer list must save CostConstants::longer_gain.
ChunkShares cheapestShares(const ChunkedWork& work, const std::vector<ChunkShares>& allowed);

}  // namespace heddle::host
