#include "host/passes/chunk_cost.h"

#include <algorithm>

namespace heddle::host {
namespace {

constexpr double kHalfFlops = 6e14;      // f16, bf16 with f32 accumulation, sustained
constexpr double kFullFlops = 5e13;      // f32
constexpr double kLinkBytes = 3.5e11;    // a device sends so much a second over NVLink
constexpr double kCallSeconds = 6e-6;    // one product launched
constexpr double kPostSeconds = 1.5e-5;  // one collective begun and ended
constexpr double kGain = 0.95;

}  // namespace

double chunkedSeconds(const ChunkedWork& work, int64_t chunks) {
  const auto parts = static_cast<double>(chunks);
  const double rate = work.half_rate ? kFullFlops : kHalfFlops;
  const double compute = work.flops / parts / rate + kCallSeconds * static_cast<double>(work.calls);
  const double communicate = work.bytes / parts / kLinkBytes + kPostSeconds;
  return compute + communicate + (parts - 1) * std::max(compute, communicate);
}

int64_t cheapestChunks(const ChunkedWork& work, const std::vector<int64_t>& allowed) {
  int64_t best = 1;
  double seconds = chunkedSeconds(work, 1);
  for (int64_t chunks : allowed) {
    const double candidate = chunkedSeconds(work, chunks);
    if (candidate < kGain * seconds) {
      best = chunks;
      seconds = candidate;
    }
  }
  return best;
}

}  // namespace heddle::host
