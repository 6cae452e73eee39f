#pragma once

#include <cstdint>
#include <vector>

namespace heddle::host {

// What one product next to one collective costs, as far as the number of chunks depends on it.
struct ChunkedWork {
  double flops = 0;        // of the product on one device
  double bytes = 0;        // that one device sends
  bool half_rate = false;  // operands of four bytes or more: not at the rate of the half types
  int64_t calls = 1;       // products that read one gathered tensor
};

// Seconds for `chunks` parts, of which the communication of one runs beside the product of another:
// the first and last part stand alone, between them the slower side decides,
//   compute + communicate + (chunks - 1) * max(compute, communicate),
// each for one part, launch and start-up costs of a part included. The rates are nominal ones of
// current data-centre GPUs: every rank must choose alike, so nothing is measured.
double chunkedSeconds(const ChunkedWork& work, int64_t chunks);

// Communicate::ctas of a part: its kernels hold that many SMs all the time, and the product beside
// them does without. Measured on four H200 (docs/benchmarks.md).
inline constexpr int32_t kChunkCtas = 8;

// The cheapest of `allowed` (ascending, at least 1 among them). More chunks must save 5 % or more.
int64_t cheapestChunks(const ChunkedWork& work, const std::vector<int64_t>& allowed);

}  // namespace heddle::host
