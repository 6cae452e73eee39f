#pragma once

#include <cstdint>
#include <vector>

#include "comm/communicator.h"

namespace heddle::host {

// Predicts how long a matrix product and the collective next to it take if both are split into
// chunks of rows. The model also chooses the lengths of the chunks. Together, the matrix product
// and the collective are called a match (OverlapMatch of host/passes/chunk/overlap_patterns.h).

// The work of one match on one device. The predicted times depend only on this work, on the lengths
// of the chunks and on CostConstants (host/passes/chunk/cost_constants.h).
struct ChunkedWork {
  double flops = 0;  // floating-point operations of the matrix products
  double bytes = 0;  // bytes that the device sends in the collective
  // true: the result of the first matrix product has elements of four bytes or more, and the model
  // uses the rate CostConstants::full_flops. false: smaller elements, CostConstants::half_flops.
  bool half_rate = false;
  // Number of library calls per chunk. A matrix product with several batch axes needs several
  // calls, because a call takes only one batch axis.
  int64_t calls = 1;
  bool reduces = false;  // true: the collective is a reduce-scatter or an allreduce
  double moved = 0;      // bytes that kernels of the match (and front) move; 0: no kernel
  // Number of rows of one matrix of the unsplit matrix product. The model uses this number to
  // compute how many output tiles are only partly filled. 0: the model assumes that all tiles are
  // full.
  double rows = 0;
  // true: the collective is an allreduce. Half of `bytes` carry the sums back to the other ranks.
  bool returns = false;
  // Bytes that the device receives in the gather before the two stages of a chunk; 0: no gather.
  double gathered = 0;
  bool two_stages = false;  // true: a chunk passes through two matrix products, one after the other
  double buffer = 0;  // bytes of the input or of the output of the collective, whichever is larger
};

// The lengths of the chunks in order, in units. A unit is a fixed number of rows. For example,
// {1, 1, 2} means three chunks with a quarter, a quarter and half of the rows. {1} means no split.
using ChunkShares = std::vector<int64_t>;
// Returns the number of units of all chunks together.
int64_t unitsOf(const ChunkShares& shares);
// Returns the shares of `chunks` chunks of one unit each.
ChunkShares equalShares(int64_t chunks);

// Returns the predicted seconds of the unsplit matrix products and kernels, without the collective.
double matmulSeconds(const ChunkedWork& work);

// Returns the splits among which chunkCollectives() chooses if the user requests no number of
// chunks:
//   no split, {1}
//   equal chunks
//   for gathers: growing chunks. The first gather should be short, because no matrix product runs
//     beside it.
//   for reductions: shrinking chunks. The last reduction should be short, because no matrix product
//     runs beside it.
//   for reductions: a short first and a short last chunk. The first reduction then starts early.
// A copy channel moves a chunk in pieces of at most CostConstants::piece_bytes. For an allreduce, a
// chunk of several pieces is slow, because each piece waits for an SM that computes its sum. Splits
// with such chunks are left out if the split into 8 equal chunks avoids them.
std::vector<ChunkShares> sharesFor(const ChunkedWork& work);

// Returns the predicted seconds of the work, split into chunks of these lengths. The communication
// of one chunk runs beside the matrix product of another chunk (host/passes/chunk/overlap_model.h).
// The result includes the time to launch the kernels of each chunk and to start its collective. A
// partly filled tile takes as long as a full tile. host/passes/chunk/cost_constants.h contains the
// rates.
double chunkedSeconds(const ChunkedWork& work, const ChunkShares& shares);

// Returns Communicate::carrier of chunk number `chunk`, counted from 0, of `chunks` chunks: its
// copy channel and its largest number of thread blocks. A copy channel lets the copy engines of the
// GPUs move the data (comm::Carrier).
//   The first chunk of a gather and the last chunk of a reduction have no copy channel and no limit
//     of thread blocks. The reason: no matrix product runs beside them.
//   All other chunks use a copy channel. If the transport has no copy channels, NCCL moves the
//     chunks with at most CostConstants::thread_blocks thread blocks. All of these chunks have the
//     same limit, because each limit needs a separate communicator.
//   Reductions alternate between two copy channels. While one chunk waits for an SM, the next chunk
//     is copied. Gathers use one copy channel: parallel copies would share the links, so that all
//     chunks arrive later.
//   `gathers_too` true: each of the chunks is also gathered before the matrix products
//     (OverlapMatch::gather). The reductions then use copy channels 2 and 3, because the gathers
//     use copy channel 1.
comm::Carrier chunkCarrier(comm::CollectiveKind kind, size_t chunk, size_t chunks,
                           bool gathers_too = false);

// Returns the element of `allowed` with the fewest predicted seconds, or {1} if the unsplit work
// takes the fewest. `allowed` must be sorted by the number of chunks. A split with more chunks is
// chosen only if it takes less than the fraction CostConstants::longer_gain of the time of the best
// split with fewer chunks.
ChunkShares cheapestShares(const ChunkedWork& work, const std::vector<ChunkShares>& allowed);

}  // namespace heddle::host
