#include "codegen/families/rows/row_candidates.h"

#include <algorithm>
#include <bit>

#include "codegen/families/rows/bundles.h"
#include "codegen/families/rows/divide_rows.h"
#include "codegen/families/rows/hold_rows.h"
#include "codegen/families/rows/row_limits.h"
#include "codegen/families/rows/row_vectors.h"
#include "ir/base/ceil_div.h"

namespace heddle::codegen {
namespace {

using row_limits::kBytesInFlight;
using row_limits::kFewRows;
using row_limits::kLoopThreads;
using row_limits::kMostBlocksOfCluster;
using row_limits::kMostThreads;
using row_limits::kMostUnrolled;
using row_limits::kMultiprocessors;
using row_limits::kSharedBytes;
using row_limits::kShortestBlock;
using row_limits::kShortWork;
using row_limits::kWarp;

// The largest number of bytes of tiles that one thread holds. If a block has 1024 threads, the
// registers of a thread have 256 bytes, and the body needs some of them.
constexpr int64_t kTileBytes = 128;
// Programs with columns: a thread holds at most kColumnTileBytes if a multiprocessor runs
// kColumnThreads threads at once, or kAheadTileBytes if it runs kAheadThreads. If a thread holds
// more elements, fewer threads share a row and combine accumulators. If it holds fewer, blocks have
// more threads, so fewer blocks store sums of columns. Both save time, so kWantedColumnBytes is a
// compromise.
constexpr int32_t kColumnThreads = 512;
constexpr int64_t kColumnTileBytes = 384;
constexpr int64_t kWantedColumnBytes = 340;
constexpr int32_t kAheadThreads = 384;
constexpr int64_t kAheadTileBytes = 576;
// If at least kFewestThreads threads read neighbouring vectors of a row, they use complete sectors
// of memory. For rows that are read only once, twice as many threads per row were faster on an
// H200. kManyThreads is twice the number of threads that the GPU runs at the same time.
constexpr int64_t kFewestThreads = 4;
constexpr int64_t kManyThreads = kMultiprocessors * 2048 * 2;

// Returns `threads`, or a smaller number of threads if clearly fewer registers then stay unused.
// For example, 16 threads with registers for 3 vectors each can hold 48 vectors. For a row of 34
// vectors, the registers for 14 vectors stay unused.
int64_t fuller(int64_t threads, int64_t vectors, int64_t most) {
  constexpr double kGain = 1.12;
  const int64_t fewest = std::min<int64_t>(threads, 8);  // together they read up to 128 bytes
  const auto fullness = [vectors](int64_t n) {
    return static_cast<double>(vectors) / static_cast<double>(n * ceilDiv(vectors, n));
  };
  int64_t best = threads;
  for (int64_t n = threads / 2; n >= fewest && ceilDiv(vectors, n) <= most; n /= 2) {
    if (fullness(n) > kGain * fullness(best)) best = n;
  }
  return best;
}

// Chooses whether a block with columns loads its next row ahead (RowForm::ahead), and how many
// blocks there are. There are at most as many as the GPU runs at the same time.
void loopOverRows(const Space& space, const RowDemand& demand, RowCandidate& candidate) {
  RowLayout& layout = candidate.layout;
  const int32_t block = layout.rows * layout.threads;
  const int64_t bytes = int64_t{layout.registers} * layout.vector * demand.ahead_bytes;
  const bool fits_fewer = bytes <= kAheadTileBytes && kAheadThreads % block == 0;
  candidate.ahead = bytes <= kColumnTileBytes || fits_fewer;
  layout.column_threads = bytes > kColumnTileBytes && fits_fewer ? kAheadThreads : kColumnThreads;
  const int64_t groups = ceilDiv(space.keptCount(), layout.rows);
  const int64_t at_once = kMultiprocessors * (layout.column_threads / block);
  layout.blocks = std::clamp<int64_t>(groups, 1, at_once);
}

// Lets several blocks compute each row of a pointwise kernel, if there are too few rows to occupy
// the GPU.
void shareRows(const Space& space, int64_t vectors, RowLayout& layout) {
  constexpr int64_t kWantedBlocks = 16 * kMultiprocessors;
  const int64_t rows = space.keptCount();
  const int64_t most = ceilDiv(vectors, int64_t{layout.threads} * layout.registers);
  const bool suits = layout.cluster == 1 && layout.threads >= kWarp && rows > 0 && most > 1;
  if (!suits || rows * 2 > kWantedBlocks) return;
  layout.rows = 1;
  layout.row_blocks = static_cast<int32_t>(std::clamp<int64_t>(kWantedBlocks / rows, 1, most));
}

// Returns whether an output has elements along the rows.
bool storesAlongRow(const Space& rows) {
  return std::any_of(rows.tensors.begin(), rows.tensors.end(), [&](const SpaceTensor& t) {
    const auto begin = t.strides.begin() + static_cast<ptrdiff_t>(rows.kept);
    return t.output && std::any_of(begin, t.strides.end(), [](int64_t s) { return s != 0; });
  });
}

// Returns whether the candidate may set RowLayout::streams: a Cuda kernel that is not looped and
// has neither bundles nor column sums.
bool readsRowsOnce(const RowCandidate& candidate, Target target) {
  return target == Target::Cuda && !candidate.looped && !candidate.layout.bundled &&
         candidate.layout.column_threads == 0;
}

// Returns the number of blocks that share a row as a cluster. Only a choice asks for more than one.
// Each block must have at least one vector per thread. Kernels without accumulators have nothing to
// exchange. If a kernel loops over the parts of a row, a cluster has no advantage.
int64_t clusterOf(const KernelChoice* choice, int64_t vectors, const RowDemand& demand,
                  const Space& space) {
  const bool suits = space.clusters && !hasColumns(space) && demand.accumulators > 0;
  if (!suits || isLooped(choice)) return 1;
  int64_t cluster = powerOf(choice, "cluster", kMostBlocksOfCluster, 1);
  while (cluster > 1 && vectors < cluster * kShortestBlock) cluster /= 2;
  return cluster;
}

// Returns how many threads should at least share a row. If there are not enough rows for all
// threads of the GPU, this is a warp. Otherwise, kFewestThreads vectors of one element may have
// less than a sector. If rows have several sectors, more threads then read complete sectors. On an
// H200, log_softmax of rows of 41 f32 elements took 0.48 times as long with 8 threads as with 4.
int64_t fewestThreads(const Space& space, const RowDemand& demand, int64_t vector) {
  constexpr int64_t kSectorBytes = 32;
  const int64_t fewest = demand.several_sweeps ? kFewestThreads : 2 * kFewestThreads;
  if (space.keptCount() * fewest < kManyThreads) return kWarp;
  const int64_t bytes = widestOf(space);
  const bool is_short = space.extents.back() * bytes <= 2 * kSectorBytes;
  return is_short ? fewest : std::max(fewest, kSectorBytes / (vector * bytes));
}

// Chooses vectors first, then threads per row, then vectors per thread, then rows per block. Each
// choice needs the earlier ones.
std::optional<RowCandidate> cudaCandidate(const Space& space, const RowDemand& demand,
                                          const KernelChoice* choice) {
  auto [vector, shifted] = vectorsOf(space, demand.ops, demand.several_sweeps);
  // RowDemand::loaded_bytes may be too small: it does not count loads at computed indices.
  const int64_t loaded_bytes = std::max(demand.loaded_bytes, widestOf(space));
  const int64_t asked = powerOf(choice, "vector", vector, vector);
  // The vectors of shifted rows begin at aligned addresses, or have one element. The threads and
  // rows of a choice with longer vectors would not suit single elements.
  const bool wants_elements = shifted && asked < vector && demand.several_sweeps;
  const KernelChoice* const block = wants_elements ? nullptr : choice;
  if (wants_elements || !shifted) vector = wants_elements ? 1 : asked;
  shifted = shifted && !wants_elements;
  const int64_t vectors = mostVectors(space, vector, shifted);
  const auto fitting = [vector = vector](int64_t limit, int64_t per_element) {
    return std::max<int64_t>(limit / (std::max<int64_t>(per_element, 1) * vector), 1);
  };
  const int64_t cluster = clusterOf(choice, vectors, demand, space);
  const int64_t tile_bytes = hasColumns(space) ? kColumnTileBytes : kTileBytes;
  const int64_t most =
      std::min(fitting(tile_bytes, demand.live_bytes), fitting(kMostUnrolled, demand.ops));
  constexpr int64_t kFewestVectors = 4;
  // If several sweeps access single elements, a thread needs many instructions per byte. On an
  // H200, layer_norm of rows of 2371 bf16 elements took 1.34 times as long with 19 elements as
  // with 10.
  constexpr int64_t kMostSingles = 16;
  const int64_t singles =
      demand.several_sweeps && vector <= 2 && !hasColumns(space) ? kMostSingles / vector : most;
  const int64_t wanted =
      std::min({hasColumns(space) ? fitting(kWantedColumnBytes, demand.live_bytes)
                                  : std::max(fitting(kBytesInFlight, loaded_bytes), kFewestVectors),
                most, singles});
  // If few threads share a row, they combine their accumulators in less time.
  const int64_t least = fewestThreads(space, demand, vector);
  // If a block has several rows, the threads of each row store separate sums of the columns. Blocks
  // with one row therefore store the fewest sums.
  const int64_t shortest = hasColumns(space) ? kShortestBlock : least;
  auto threadsFor = [vectors, least = shortest](int64_t registers) {
    const auto threads = static_cast<int64_t>(
        std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(ceilDiv(vectors, registers), 1))));
    const auto all = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(vectors)));
    return std::max(threads, std::min(least, all));
  };
  RowCandidate candidate;
  RowLayout& layout = candidate.layout;
  int64_t threads = threadsFor(wanted);
  // A shifted row may have a few vectors more than its threads can hold. One more vector per thread
  // then wastes fewer registers than twice as many threads would.
  const int64_t in_blocks = kMostThreads * cluster;  // threads of all blocks that share a row
  const bool may_hold_more = shifted && demand.several_sweeps && threads <= in_blocks;
  const int64_t held = most + (may_hold_more ? 1 : 0);
  threads = fuller(threads, vectors, std::min(held, 2 * wanted));
  // While a block of kMostThreads threads combines accumulators, its multiprocessor loads nothing.
  if (threads == in_blocks && ceilDiv(vectors, threads / 2) <= most) threads /= 2;
  // One thread reads a row of a few elements that cannot be read as vectors. No threads then need
  // to combine accumulators.
  constexpr int64_t kFewElements = 8;
  if (vector == 1 && vectors <= std::min(kFewElements, most)) threads = 1;
  const auto warps =
      static_cast<uint64_t>(kSharedBytes / (8 * std::max<int64_t>(demand.accumulators, 1)));
  const int64_t most_threads =
      std::min(hasColumns(space) ? int64_t{kColumnThreads} : in_blocks,
               cluster * kWarp * static_cast<int64_t>(std::bit_floor(warps)));
  threads = powerOf(block, "threads", most_threads, std::min(threads, most_threads));
  if (cluster > 1) threads = std::max(threads, cluster * kShortestBlock);
  int64_t registers = std::max<int64_t>(ceilDiv(vectors, threads), 1);  // a row may be empty
  if (registers > (threads < in_blocks ? held : most) || isLooped(choice)) {
    candidate.looped = true;
    threads =
        powerOf(block, "threads", most_threads, std::min(kLoopThreads * cluster, most_threads));
    registers = wanted;
  }
  layout.vector = static_cast<int32_t>(vector);
  layout.threads = static_cast<int32_t>(threads);
  layout.cluster = static_cast<int32_t>(cluster);
  layout.registers = static_cast<int32_t>(registers);
  // If one thread computes a row, no threads wait for each other. On an H200, blocks of twice
  // kShortestBlock threads then took 0.74 to 1.02 times as long as blocks of kShortestBlock.
  const int64_t shortest_block = threads == 1 ? 2 * kShortestBlock : kShortestBlock;
  // A block consists of complete warps.
  layout.rows =
      static_cast<int32_t>(std::max(powerOf(block, "rows", most_threads / threads,
                                            std::max<int64_t>(shortest_block / threads, 1)),
                                    std::max<int64_t>(kWarp / threads, 1)));
  if (cluster > 1) layout.rows = 1;
  layout.shifted = shifted;
  layout.exact = !shifted && space.extents.back() % vector == 0;
  layout.full = !candidate.looped && holdsFull(layout, space);
  const bool is_pointwise = demand.accumulators == 0 && !hasColumns(space);
  if (candidate.looped && is_pointwise) {
    shareRows(space, vectors, layout);
    return candidate;
  }
  const bool has_few = choice == nullptr && space.keptCount() < kFewRows;
  if (has_few && is_pointwise) return std::nullopt;
  if (candidate.looped && (hasColumns(space) || has_few)) return std::nullopt;
  if (hasColumns(space)) {
    // Separate launches divide the columns among all multiprocessors. They are faster in two cases:
    // there are too few blocks for all multiprocessors, or the rows are so short that a block has
    // more than kMostRows of them, and the threads of each row would store separate sums.
    constexpr int32_t kMostRows = 2;
    const int64_t groups = ceilDiv(space.keptCount(), layout.rows);
    const bool is_large = space.keptCount() * space.reducedCount() > kShortWork;
    if (is_large && (groups < kFewRows || layout.rows > kMostRows)) return std::nullopt;
    loopOverRows(space, demand, candidate);
  }
  return candidate;
}

// Does the same as chooseWholeRows() for rows whose elements are neighbours in memory, but the
// blocks of a cluster may loop over the parts of a row. `choice` is nullptr or has the family
// "rows".
std::optional<RowCandidate> chooseContiguous(const Space& rows, Target target,
                                             const RowDemands& demands,
                                             const KernelChoice* choice) {
  // Kernels that store little are faster with `streams`. On an H200, sums of rows took 0.94 to 0.99
  // times as long as without it, but norms and pointwise kernels took 1.01 to 1.08 times as long.
  const bool is_sum = !demands.expensive.several_sweeps && !storesAlongRow(rows);
  const bool streams = (choice ? choice->find("streams").value_or(is_sum) : is_sum) != 0;
  const auto best = [&](const RowDemand& demand, RowVariant variant) {
    std::optional<RowCandidate> found = target == Target::Cuda
                                            ? cudaCandidate(rows, demand, choice)
                                            : chooseCpuRows(rows, demand, choice);
    if (found) found->variant = variant;
    if (found && streams && readsRowsOnce(*found, target)) found->layout.streams = true;
    return found;
  };
  // Blocks with columns have enough registers to keep values that take several ops to compute
  // (RowVariant::ManyOps), unless the rows are long.
  std::optional<RowCandidate> chosen;
  if (demands.many_ops) chosen = best(*demands.many_ops, RowVariant::ManyOps);
  if (!chosen || !chosen->ahead) chosen = best(demands.expensive, RowVariant::Expensive);
  if (!chosen || !demands.loaded || isLooped(choice)) return chosen;
  const std::optional<int64_t> hold = choice != nullptr ? choice->find("hold") : std::nullopt;
  if (!hold && !chosen->looped && !isHeavy(*chosen, demands.expensive.kept_bytes > 0))
    return chosen;
  const std::optional<RowCandidate> loaded = best(*demands.loaded, RowVariant::Loaded);
  const bool is_chosen = choice != nullptr && choice->find("threads");
  if (!hold) return withLoadedRow(*chosen, loaded, rows, *demands.loaded, is_chosen);
  return withHold(*chosen, loaded, rows, *demands.loaded, static_cast<Hold>(*hold), is_chosen);
}

}  // namespace

bool holdsFull(const RowLayout& layout, const Space& space) {
  const int64_t fewest = vectorsPerRow(space, layout.vector);
  const int64_t held = int64_t{layout.threads} * layout.registers;
  return layout.shifted ? held - layout.threads < fewest : layout.exact && fewest == held;
}

std::optional<RowCandidate> chooseWholeRows(const Space& rows, Target target,
                                            const RowDemands& demands, const KernelChoice* choice) {
  // Rows of one element: the vectors of bundles have elements of neighbouring rows.
  if (target == Target::Cuda && rows.reducedCount() == 1 && !isLooped(choice)) {
    if (const auto bundles = chooseBundles(rows, target, demands, choice)) return bundles;
  }
  if (!isContiguousAlongRow(rows)) return chooseBundles(rows, target, demands, choice);
  if (!isFamily(choice, "rows") || hasColumns(rows)) choice = nullptr;
  const std::optional<RowCandidate> found = chooseContiguous(rows, target, demands, choice);
  if (!found || !found->looped || found->layout.cluster == 1) return found;
  // A cluster that cannot hold the row has no advantage over one block.
  KernelChoice without = *choice;
  without.set("cluster", 1);
  return chooseContiguous(rows, target, demands, &without);
}

KernelChoice choiceOf(const RowCandidate& candidate, Target target) {
  if (candidate.layout.divided.parts > 0) return dividedChoice(candidate.layout);
  KernelChoice choice{"rows", {}};
  if (target == Target::Cuda) {
    const RowLayout& layout = candidate.layout;
    choice.parameters = {{"vector", layout.vector},
                         {"threads", layout.threads},
                         {"registers", layout.registers},
                         {"rows", layout.rows}};
    if (layout.cluster > 1) choice.set("cluster", layout.cluster);
  }
  if (candidate.layout.bundled) {
    choice.set("vector", candidate.layout.vector);
  } else {
    choice.set("looped", candidate.looped ? 1 : 0);
    const Hold row = candidate.layout.shared_bytes > 0 ? Hold::Shared : Hold::Row;
    const Hold hold = candidate.variant == RowVariant::Loaded ? row : Hold::Values;
    if (target == Target::Cuda) choice.set("hold", static_cast<int64_t>(hold));
    if (readsRowsOnce(candidate, target)) choice.set("streams", candidate.layout.streams ? 1 : 0);
  }
  return choice;
}

}  // namespace heddle::codegen
