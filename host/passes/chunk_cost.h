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
  double peers = 1;        // of a device: each is sent to by itself
  bool reduces = false;    // what has come is summed
  double moved = 0;        // bytes that a kernel between product and collective reads and writes
  double rows = 0;         // of one matrix of the whole product; 0: as many as fill their tiles
};

// Seconds for `chunks` parts, of which the communication of one runs beside the product of another:
// the first and last part stand alone, between them the slower side decides,
//   compute + communicate + (chunks - 1) * max(compute, communicate),
// each for one part, launch and start-up costs of a part included; rows that do not fill the last
// tile of a part cost as much as if they did. Copy engines move the parts, which costs the product
// nothing but the time of the sums; a sum in turn waits until a product leaves the SMs, which is
// why such parts have two lanes (chunkCarrier) and at the end one is half done. The rates are
// nominal ones of current data-centre GPUs: every rank must choose alike, so nothing is measured.
double chunkedSeconds(const ChunkedWork& work, int64_t chunks);

// Communicate::carrier of a part: copy engines, and where there is no way for them few thread
// blocks, which products beside them are not prepared for. Equal for all kinds, so that they share
// lanes. Parts that are reduced take turns in two lanes: one is copied while the other waits for an
// SM to sum on. Those that are only copied would share the links and all come later.
comm::Carrier chunkCarrier(comm::CollectiveKind kind, int64_t chunk);

// The cheapest of `allowed` (ascending, at least 1 among them). More chunks must save 3 % or more.
int64_t cheapestChunks(const ChunkedWork& work, const std::vector<int64_t>& allowed);

}  // namespace heddle::host
