#include "host/passes/chunk/cost_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "host/passes/chunk/cost_constants.h"
#include "host/passes/chunk/overlap_model.h"

namespace heddle::host {
namespace {

// Returns the factor by which a matrix product of `rows` rows takes longer because its last tile is
// only partly filled.
double tileWaste(double rows) {
  const double tile = kCostConstants.tile_rows;
  return rows > 0 ? std::ceil(rows / tile) * tile / rows : 1;
}

// Returns the durations of the steps of a chunk that has the fraction `share` of all rows.
//   is_first  true: the first chunk. NCCL gathers it, and copy channels gather all later chunks.
//   is_whole  true: the chunk has all rows, so no communication runs beside its matrix product.
ChunkSeconds secondsOf(const ChunkedWork& work, double share, bool is_first, bool is_whole) {
  constexpr const CostConstants& k = kCostConstants;
  ChunkSeconds t;
  const double flops = work.flops * share * tileWaste(work.rows * share);
  const double bytes = work.bytes * share;
  t.matmul = flops / (work.half_rate ? k.full_flops : k.half_flops) +
             k.call_seconds * static_cast<double>(work.calls);
  if (work.moved > 0) t.matmul += work.moved * share / k.memory_bytes + k.call_seconds;
  t.pieces = static_cast<int64_t>(
      std::clamp(std::ceil(work.buffer * share / k.piece_bytes), 1.0, k.most_pieces));
  t.meet = k.meet_seconds;
  const double gathered = (work.reduces ? work.gathered : work.bytes) * share;
  if (gathered > 0 || !work.reduces) {
    t.come = is_first ? gathered / k.link_bytes + k.post_seconds : gathered / k.pull_bytes;
  }
  if (!is_whole) t.matmul += gathered / k.memory_bytes;
  if (work.reduces) {
    const double back = work.returns ? bytes / 2 : 0;
    t.alone = bytes / k.link_bytes + k.post_seconds;
    t.push = (bytes - back) / k.push_bytes;
    t.pull = back / k.pull_bytes;
    if (!is_whole) t.matmul += (bytes - back) / k.beside_bytes + k.call_seconds;
  }
  return t;
}

}  // namespace

int64_t unitsOf(const ChunkShares& shares) {
  return std::accumulate(shares.begin(), shares.end(), int64_t{0});
}

ChunkShares equalShares(int64_t chunks) { return ChunkShares(static_cast<size_t>(chunks), 1); }

double matmulSeconds(const ChunkedWork& work) { return secondsOf(work, 1, true, true).matmul; }

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
    return shares.size() > 1 && work.buffer * longest / static_cast<double>(unitsOf(shares)) >
                                    kCostConstants.piece_bytes;
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

comm::Carrier chunkCarrier(comm::CollectiveKind kind, size_t chunk, size_t chunks,
                           bool gathers_too) {
  constexpr int32_t kBlocks = kCostConstants.thread_blocks;
  const bool gathers = kind == comm::CollectiveKind::Allgather;
  if (chunk == (gathers ? 0 : chunks - 1)) return {};
  if (gathers) return {kBlocks, 1};
  return {kBlocks, static_cast<int32_t>((gathers_too ? 2 : 1) + chunk % 2)};
}

ChunkShares cheapestShares(const ChunkedWork& work, const std::vector<ChunkShares>& allowed) {
  ChunkShares best = {1};
  double seconds = chunkedSeconds(work, best);
  for (const ChunkShares& shares : allowed) {
    const double candidate = chunkedSeconds(work, shares);
    const bool is_longer = shares.size() > best.size();
    if (candidate < (is_longer ? kCostConstants.longer_gain : 1) * seconds) {
      best = shares;
      seconds = candidate;
    }
  }
  return best;
}

}  // namespace heddle::host
