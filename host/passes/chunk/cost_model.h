#pragma once

#include <cstdint>
#include <vector>

#include "comm/communicator.h"

namespace heddle::host {

// What one product next to one collective costs, as far as the number of chunks depends on it.
struct ChunkedWork {
  double flops = 0;        // of the product on one device
  double bytes = 0;        // that one device sends
  bool half_rate = false;  // operands of four bytes or more: not at the rate of the half types
  int64_t calls = 1;       // of the library a part: products that read one gathered tensor, times
                           // the batches that it does not take at once
  bool reduces = false;    // what has come is summed
  double moved = 0;        // bytes that a kernel between product and collective reads and writes
  double rows = 0;         // of one matrix of the whole product; 0: as many as fill their tiles
  bool returns = false;    // half of the bytes: what was summed, on its way back
  // Of chunks that are gathered before and reduced after: bytes that one device is sent for the
  // first.
  double gathered = 0;
  bool two_stages = false;  // two products, one after the other
  double buffer = 0;        // bytes of the longer side of the collective on one device
};

// The rows of the chunks in order, in units of one length; {1}: whole.
using ChunkShares = std::vector<int64_t>;
int64_t unitsOf(const ChunkShares& shares);
ChunkShares equalShares(int64_t chunks);

// The products alone.
double productSeconds(const ChunkedWork& work);

// What chunks may be without a word from the user. Beside equal ones: such that grow, since the
// first gather stands alone, that shrink, since the last reduction does, and that do both, where
// the wire is the slower side and should begin early. None of an allreduce is longer than what a
// copy channel moves at once, if that can be: each piece more waits for an SM again before it comes
// back.
std::vector<ChunkShares> sharesFor(const ChunkedWork& work);

// Seconds for these chunks, of which the communication of one runs beside the product of another
// (host/passes/chunk/overlap_model.h). Launch and start-up costs of a chunk are included; rows that
// do not fill the last tile cost as much as if they did. The rates are nominal ones of current
// data-centre GPUs, from docs/benchmarks.md: every rank must choose alike, so nothing is measured.
double chunkedSeconds(const ChunkedWork& work, const ChunkShares& shares);

// Communicate::carrier of a chunk. The one that stands alone, first of a gather or last of a
// reduction, goes as a collective without products beside it does. The others by copy engines, and
// where there is no way for them by few thread blocks, which products beside them are not prepared
// for; equal for all kinds, so that they share copy channels. Chunks that are reduced take turns in
// two copy channels: one is copied while the other waits for an SM to sum on. Those that are only
// copied would share the links and all come later; beside a gather of the same chunks, reductions
// have copy channels of their own.
comm::Carrier chunkCarrier(comm::CollectiveKind kind, int64_t chunk, int64_t chunks,
                           bool gathers_too = false);

// The cheapest of `allowed` (by length; {1} among them). More chunks must save half a percent.
ChunkShares cheapestShares(const ChunkedWork& work, const std::vector<ChunkShares>& allowed);

}  // namespace heddle::host
