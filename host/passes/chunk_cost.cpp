#include "host/passes/chunk_cost.h"

#include <algorithm>
#include <cmath>

namespace heddle::host {
namespace {

constexpr double kHalfFlops = 6e14;     // f16, bf16 with f32 accumulation, sustained
constexpr double kFullFlops = 5e13;     // f32
constexpr double kLinkBytes = 3.5e11;   // a device sends so much a second over NVLink
constexpr double kBlockBytes = 2.2e10;  // of which one thread block moves so much
constexpr double kMemoryBytes = 3e12;   // a kernel moves so much a second
constexpr double kSms = 132;
constexpr double kCallSeconds = 6e-6;    // one product launched
constexpr double kPartSeconds = 1.2e-5;  // more of a part, whose last wave of tiles is not full
constexpr double kPostSeconds = 1.5e-5;  // one collective begun and ended
constexpr double kTileRows = 128;
constexpr double kGain = 0.95;

// How much longer a product takes because the last tiles of its rows are not full.
double tileWaste(double rows) {
  return rows > 0 ? std::ceil(rows / kTileRows) * kTileRows / rows : 1;
}

}  // namespace

double chunkedSeconds(const ChunkedWork& work, int64_t chunks) {
  const auto parts = static_cast<double>(chunks);
  const bool whole = chunks == 1;
  const double sms = whole ? kSms : kSms - work.ctas;
  const double rate = (work.half_rate ? kFullFlops : kHalfFlops) * sms / kSms;
  const double link = whole ? kLinkBytes : std::min(kLinkBytes, work.ctas * kBlockBytes);
  const double call = whole ? kCallSeconds : kCallSeconds + kPartSeconds;
  const double flops = work.flops / parts * tileWaste(work.rows / parts);
  const double kernel = work.moved > 0 ? work.moved / parts / kMemoryBytes + kCallSeconds : 0;
  const double compute = flops / rate + call * static_cast<double>(work.calls) + kernel;
  const double communicate = work.bytes / parts / link + kPostSeconds;
  return compute + communicate + (parts - 1) * std::max(compute, communicate);
}

int32_t chunkCtas(comm::CollectiveKind kind) {
  return kind == comm::CollectiveKind::Allreduce ? 16 : 8;
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
