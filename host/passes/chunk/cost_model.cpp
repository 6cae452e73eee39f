#include "host/passes/chunk/cost_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "host/passes/chunk/overlap_model.h"

namespace heddle::host {
namespace {

constexpr double kHalfFlops = 7.4e14;  // f16, bf16 with f32 accumulation, sustained
constexpr double kFullFlops = 5e13;    // f32
// A device sends so much a second over NVLink: by NCCL's kernels, and as its copy engines write to
// peers and read from them.
constexpr double kLinkBytes = 3.5e11;
constexpr double kPushBytes = 2.5e11;
constexpr double kPullBytes = 2.2e11;
constexpr double kMemoryBytes = 3e12;  // a kernel moves so much a second
// What is copied and summed beside products makes them slower: they share memory and power.
constexpr double kBesideBytes = 5e11;
constexpr double kCallSeconds = 6e-6;     // one product launched
constexpr double kPostSeconds = 2e-5;     // one collective of kernels begun, met and ended
constexpr double kMeetSeconds = 3e-6;     // a copy channel begins a piece when all are there
constexpr double kPieceBytes = 64 << 20;  // that a copy channel moves at once
constexpr double kMostPieces = 64;        // that are told apart: of more the wire is all
constexpr double kTileRows = 128;
constexpr double kGain = 0.995;

// How much longer a product takes because the last tiles of its rows are not full.
double tileWaste(double rows) {
  return rows > 0 ? std::ceil(rows / kTileRows) * kTileRows / rows : 1;
}

ChunkSeconds secondsOf(const ChunkedWork& work, double share, bool is_first, bool is_whole) {
  ChunkSeconds t;
  const double flops = work.flops * share * tileWaste(work.rows * share);
  const double bytes = work.bytes * share;
  t.product = flops / (work.half_rate ? kFullFlops : kHalfFlops) +
              kCallSeconds * static_cast<double>(work.calls);
  if (work.moved > 0) t.product += work.moved * share / kMemoryBytes + kCallSeconds;
  t.pieces = static_cast<int64_t>(
      std::clamp(std::ceil(work.buffer * share / kPieceBytes), 1.0, kMostPieces));
  t.meet = kMeetSeconds;
  const double gathered = (work.reduces ? work.gathered : work.bytes) * share;
  if (gathered > 0 || !work.reduces) {
    t.come = is_first ? gathered / kLinkBytes + kPostSeconds : gathered / kPullBytes;
  }
  if (!is_whole) t.product += gathered / kMemoryBytes;
  if (work.reduces) {
    const double back = work.returns ? bytes / 2 : 0;
    t.alone = bytes / kLinkBytes + kPostSeconds;
    t.push = (bytes - back) / kPushBytes;
    t.pull = back / kPullBytes;
    if (!is_whole) t.product += (bytes - back) / kBesideBytes + kCallSeconds;
  }
  return t;
}

}  // namespace

int64_t unitsOf(const ChunkShares& shares) {
  return std::accumulate(shares.begin(), shares.end(), int64_t{0});
}

ChunkShares equalShares(int64_t chunks) { return ChunkShares(static_cast<size_t>(chunks), 1); }

double productSeconds(const ChunkedWork& work) { return secondsOf(work, 1, true, true).product; }

std::vector<ChunkShares> sharesFor(const ChunkedWork& work) {
  std::vector<ChunkShares> all = {{1},          {1, 1},       {1, 1, 2},
                                  {1, 1, 1, 1}, {1, 1, 2, 4}, equalShares(8)};
  if (!work.reduces) return all;
  for (ChunkShares& shares : all) std::reverse(shares.begin(), shares.end());
  all.insert(all.end(), {{1, 2, 1}, {1, 2, 2, 2, 1}});
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.size() < b.size(); });
  const auto is_long = [&](const ChunkShares& shares) {
    const auto longest = static_cast<double>(*std::max_element(shares.begin(), shares.end()));
    return shares.size() > 1 &&
           work.buffer * longest / static_cast<double>(unitsOf(shares)) > kPieceBytes;
  };
  if (work.returns && !is_long(equalShares(8))) std::erase_if(all, is_long);
  return all;
}

double chunkedSeconds(const ChunkedWork& work, const ChunkShares& shares) {
  const bool is_whole = shares.size() == 1;
  const auto units = static_cast<double>(unitsOf(shares));
  std::vector<ChunkSeconds> chunks;
  for (int64_t share : shares) {
    chunks.push_back(secondsOf(work, static_cast<double>(share) / units, chunks.empty(), is_whole));
  }
  return pipelineSeconds(chunks, work.reduces, work.two_stages ? 2 : 1);
}

comm::Carrier chunkCarrier(comm::CollectiveKind kind, int64_t chunk, int64_t chunks,
                           bool gathers_too) {
  constexpr int32_t kCtas = 16;
  const bool gathers = kind == comm::CollectiveKind::Allgather;
  if (chunk == (gathers ? 0 : chunks - 1)) return {};
  if (gathers) return {kCtas, 1};
  return {kCtas, static_cast<int32_t>((gathers_too ? 2 : 1) + chunk % 2)};
}

ChunkShares cheapestShares(const ChunkedWork& work, const std::vector<ChunkShares>& allowed) {
  ChunkShares best = {1};
  double seconds = chunkedSeconds(work, best);
  for (const ChunkShares& shares : allowed) {
    const double candidate = chunkedSeconds(work, shares);
    const bool is_longer = shares.size() > best.size();
    if (candidate < (is_longer ? kGain : 1) * seconds) {
      best = shares;
      seconds = candidate;
    }
  }
  return best;
}

}  // namespace heddle::host
