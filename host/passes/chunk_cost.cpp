#include "host/passes/chunk_cost.h"

#include <algorithm>
#include <cmath>

namespace heddle::host {
namespace {

constexpr double kHalfFlops = 7e14;    // f16, bf16 with f32 accumulation, sustained
constexpr double kFullFlops = 5e13;    // f32
constexpr double kLinkBytes = 3.5e11;  // a device sends so much a second over NVLink
constexpr double kMemoryBytes = 3e12;  // a kernel moves so much a second
constexpr double kCallSeconds = 6e-6;  // one product launched
constexpr double kPartSeconds = 5e-6;  // more of a part, whose last wave of tiles is not full
constexpr double kPostSeconds = 2e-5;  // one collective begun, met and ended
constexpr double kCopySeconds = 1e-6;  // more for each peer
constexpr double kTileRows = 128;
constexpr double kGain = 0.97;

// How much longer a product takes because the last tiles of its rows are not full.
double tileWaste(double rows) {
  return rows > 0 ? std::ceil(rows / kTileRows) * kTileRows / rows : 1;
}

}  // namespace

double chunkedSeconds(const ChunkedWork& work, int64_t chunks) {
  const auto parts = static_cast<double>(chunks);
  const double call = kCallSeconds + (chunks == 1 ? 0 : kPartSeconds);
  const double flops = work.flops / parts * tileWaste(work.rows / parts);
  const double kernel = work.moved > 0 ? work.moved / parts / kMemoryBytes + kCallSeconds : 0;
  const double sum =
      work.reduces && chunks > 1 ? work.bytes / parts / kMemoryBytes + kCallSeconds : 0;
  const double compute = flops / (work.half_rate ? kFullFlops : kHalfFlops) +
                         call * static_cast<double>(work.calls) + kernel + sum;
  const double copies = chunks == 1 ? 0 : kCopySeconds * work.peers;
  const double wire = work.bytes / parts / kLinkBytes;
  const double communicate = wire + kPostSeconds + copies;
  if (chunks == 1) return compute + communicate;
  if (!work.reduces) return compute + communicate + (parts - 1) * std::max(compute, communicate);
  const double cycle = std::max({compute, wire, (communicate + compute) / 2});
  return compute + communicate + wire / 2 + (parts - 1) * cycle;
}

comm::Carrier chunkCarrier(comm::CollectiveKind kind, int64_t chunk) {
  constexpr int32_t kCtas = 16;
  if (kind == comm::CollectiveKind::Allgather) return {kCtas, 1};
  return {kCtas, static_cast<int32_t>(1 + chunk % 2)};
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
