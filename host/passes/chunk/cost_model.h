#pragma once

#include <cstdint>
#include <vector>

#include "comm/communicator.h"

namespace heddle::host {

// The work of one overlap pattern match (host/passes/chunk/overlap_patterns.h) on one device: a
// collective and the matrix products next to it. The choice of chunks depends on nothing else.
struct ChunkedWork {
  double flops = 0;        // floating-point operations of the matrix products
  double bytes = 0;        // bytes that the device sends in the collective
  bool half_rate = false;  // true: types of four bytes or more, at CostConstants::full_flops
  // Library calls per chunk: the number of matrix products, times the number of calls that each of
  // them needs because a call takes only one batch axis.
  int64_t calls = 1;
  bool reduces = false;  // the collective is a reduce-scatter or an allreduce
  double moved = 0;      // bytes that the kernel of the match reads and writes
  // Rows of one matrix of the unsplit matrix product. The model counts partly filled tiles by them.
  // 0: the model assumes that all tiles are full.
  double rows = 0;
  // The collective is an allreduce: half of `bytes` carry the sums back to the other ranks.
  bool returns = false;
  // Bytes that the device receives in the gather before the two stages of a chunk.
  double gathered = 0;
  bool two_stages = false;  // a chunk passes through two matrix products, one after the other
  double buffer = 0;        // bytes of the collective's input or output, whichever is longer
};

// The shares of the chunks: their lengths in order, in units. A unit is a fixed number of rows.
// {1, 1, 2} are three chunks with a quarter, a quarter and half of the rows; {1} is unsplit.
using ChunkShares = std::vector<int64_t>;
// Returns the number of units of all chunks together.
int64_t unitsOf(const ChunkShares& shares);
// Returns the shares of `chunks` chunks of one unit each.
ChunkShares equalShares(int64_t chunks);

// Returns the predicted seconds of the matrix products and the kernel, unsplit and without the
// collective.
double productSeconds(const ChunkedWork& work);

// Returns the splits that the pass tries if the user requests none:
//   equal chunks
//   growing chunks, for gathers: the first gather is short, because no matrix product hides it
//   shrinking chunks, for reductions: the last one is short, because no matrix product hides it
//   chunks with a short first and last one, for reductions: the links start to work early
// The list is shorter for an allreduce if each of 8 equal chunks fits into one piece of a copy
// channel (CostConstants::piece_bytes). It then has no split with a chunk of several pieces. The
// reason: a chunk waits for an SM once per piece before its sums are sent back.
std::vector<ChunkShares> sharesFor(const ChunkedWork& work);

// Returns the predicted seconds of the work, split into chunks with these shares. The communication
// of one chunk runs beside the matrix product of another chunk (host/passes/chunk/overlap_model.h).
// The result includes the cost to launch the kernels of each chunk and to start its collective. A
// partly filled tile costs as much as a full one. host/passes/chunk/cost_constants.h has the rates.
double chunkedSeconds(const ChunkedWork& work, const ChunkShares& shares);

// Returns Communicate::carrier of a chunk: the copy channel and the number of thread blocks.
//   The first chunk of a gather and the last chunk of a reduction have no copy channel and no limit
//     of thread blocks, because no matrix product runs beside them.
//   All other chunks use a copy channel. If the transport has none, NCCL moves the chunks with
//     CostConstants::thread_blocks thread blocks. This number is equal for all kinds of
//     collectives, so that they can share copy channels.
//   Reductions alternate between two copy channels: while one chunk waits for an SM, the next one
//     is copied. Gathers use one copy channel, because parallel copies would share the links and
//     all arrive later.
//   `gathers_too` says that the rows of the same chunks are gathered first. The reductions then use
//     other copy channels than the gathers.
comm::Carrier chunkCarrier(comm::CollectiveKind kind, size_t chunk, size_t chunks,
                           bool gathers_too = false);

// Returns the shares with the fewest predicted seconds. `allowed` must contain {1} and be sorted by
// the number of chunks. Shares with more chunks are chosen only if they take less than
// CostConstants::longer_gain of the time.
ChunkShares cheapestShares(const ChunkedWork& work, const std::vector<ChunkShares>& allowed);

}  // namespace heddle::host
