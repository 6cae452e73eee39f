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
  int32_t ctas = 8;        // Communicate::ctas of a part
  double moved = 0;        // bytes that a kernel between product and collective reads and writes
  double rows = 0;         // of one matrix of the whole product; 0: as many as fill their tiles
};

// Seconds for `chunks` parts, of which the communication of one runs beside the product of another:
// the first and last part stand alone, between them the slower side decides,
//   compute + communicate + (chunks - 1) * max(compute, communicate),
// each for one part, launch and start-up costs of a part included; rows that do not fill the last
// tile of a part cost as much as if they did; a part's product does without
// the SMs that the collective holds, and the collective without the speed that more of them would
// give. The rates are nominal ones of current data-centre GPUs: every rank must choose alike, so
// nothing is measured.
double chunkedSeconds(const ChunkedWork& work, int64_t chunks);

// Communicate::ctas of a part. Of 8 and 16 the faster on two H200 (docs/benchmarks.md): a
// gather or reduce-scatter has time enough beside a product, an allreduce moves twice as much.
int32_t chunkCtas(comm::CollectiveKind kind);

// The cheapest of `allowed` (ascending, at least 1 among them). More chunks must save 5 % or more.
int64_t cheapestChunks(const ChunkedWork& work, const std::vector<int64_t>& allowed);

}  // namespace heddle::host
