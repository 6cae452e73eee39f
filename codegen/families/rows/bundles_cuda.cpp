#include "codegen/families/rows/bundles_cuda.h"

#include <algorithm>
#include <bit>

#include "codegen/families/rows/bundle_elements.h"
#include "codegen/families/rows/row_limits.h"
#include "ir/base/ceil_div.h"

namespace heddle::codegen {
namespace bundles {
namespace {

using row_limits::kBytesInFlight;
using row_limits::kMostBlocksOfCluster;
using row_limits::kMostUnrolled;
using row_limits::kMultiprocessors;
using row_limits::kSharedBytes;
using row_limits::kSharedBytesOfTwo;
using row_limits::kShortestBlock;
using row_limits::kShortWork;
using row_limits::kWarp;

// Memory is read in *sectors* of this many bytes. If a block uses fewer bytes of neighbouring rows,
// a part of each access is wasted.
constexpr int64_t kSectorBytes = 32;
// The number of bytes of neighbouring rows that a block should read together. It is kAlignedBytes
// if they begin at sectors, kSectorBytes for bundles of one row of 2-byte elements, otherwise
// kWideBytes. If the rows then do not fit in registers or shared memory, a block reads fewer bytes
// together.
constexpr int64_t kAlignedBytes = 64;
constexpr int64_t kWideBytes = 128;
// The longest vector without a KernelChoice, and the longest one that a choice may name. Each
// lane has its own accumulators and values per row, which take registers.
constexpr int64_t kWantedLanes = 4;
constexpr int64_t kMostLanes = 8;
constexpr int64_t kMostStates = 32;  // the most accumulators of a thread, over all lanes
constexpr int64_t kTileBytes = 96;   // the most bytes of tiles that one thread holds
// The largest number of threads of a block. Two such blocks fit on a multiprocessor. If rows do not
// begin at sectors, a block that reads as many bytes together as stated above may have
// kMostWideThreads, because wider blocks waste fewer parts of sectors. On an H200, such norms of
// bf16 and f32 then took 0.75 to 0.8 times as long. A choice may also name up to kMostWideThreads.
constexpr int64_t kMostThreads = 512;
constexpr int64_t kMostWideThreads = 1024;
constexpr int64_t kStateBytes = 8;  // bytes of an accumulator in shared memory
// The largest number of vectors per thread in shared memory. With more vectors, one launch per
// sweep is faster. For example, on an H200, a softmax over the middle axis of f32[64, 3000, 333]
// took 300 us with 24 vectors per thread. It took 222 us in two launches.
constexpr int32_t kMostVectors = 16;
constexpr int64_t kRegister = 4;  // bytes; a vector in shared memory is not smaller
// With fewer blocks than this, multiprocessors are idle. This does not matter if there are at most
// kShortWork elements.
constexpr int64_t kFewBlocks = kMultiprocessors;
constexpr int64_t kLongRow = 256;  // elements of a row that is long enough for a cluster
// A cluster shares bundles of at least this many rows per block, because blocks with fewer rows
// would combine too many accumulators.
constexpr int64_t kFewestRows = 16;

int64_t powerAbove(int64_t n) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(n, 1))));
}

bool isShortWork(const Space& space) {
  return space.keptCount() * space.reducedCount() <= kShortWork;
}

// What a block of a cluster processes.
struct ClusterShape {
  int64_t bytes;    // bytes of neighbouring rows that the block reads together
  int64_t rows;     // the fewest rows of the block, even if they have more bytes
  int64_t threads;  // threads of the block
};
// In the order in which they should be tried.
constexpr ClusterShape kClusterShapes[] = {{kWideBytes, 1, kMostThreads},
                                           {kAlignedBytes, 1, kMostThreads},
                                           {kSectorBytes, kFewestRows, kMostThreads},
                                           {kSectorBytes, kFewestRows, kMostWideThreads}};

class CudaBundles {
 public:
  // `loads_pairs`: vectors of four 16-bit elements may begin at any address (hd::loadPairs()).
  CudaBundles(const Space& space, const BundleElements& elements, const RowDemands& demands,
              const KernelChoice* choice, int64_t cluster, bool loads_pairs)
      : space_(space),
        elements_(elements),
        demands_(demands),
        choice_(choice),
        cluster_(cluster),
        length_(std::max<int64_t>(space.reducedCount(), 1)),
        vector_(vector(loads_pairs)),
        begins_at_sectors_(
            vector_ > 1 &&
            areBundlesAligned(space_, std::max(vector_, kSectorBytes / elements.widest))) {}

  // Returns the layout in which one block holds each bundle. Tries wide accesses first.
  std::optional<RowCandidate> choose() const {
    const int64_t wide = begins_at_sectors_ ? kAlignedBytes
                         : isNarrowest()    ? kSectorBytes
                                            : kWideBytes;
    std::optional<RowCandidate> found;
    for (const bool shared : {false, true}) {
      const int64_t least = rowsOf(kSectorBytes);
      for (int64_t rows = rowsOf(wide); rows >= least && !found; rows /= 2) {
        const int64_t bundles = std::max<int64_t>(rows / vector_, 1);
        found = shared ? inSharedMemory(bundles, kMostThreads / bundles) : inRegisters(bundles);
        if (found && hasFewBlocks(*found) && rows > least) found.reset();
      }
    }
    if (!found) return std::nullopt;
    if (choice_ != nullptr) return chosen(*found);
    const RowLayout& layout = found->layout;
    const bool is_slow = isLarge() && layout.shared_bytes > 0 && layout.registers > kMostVectors;
    return is_slow || hasFewBlocks(*found) ? std::nullopt : found;
  }

  // Returns the layout in which the blocks of a cluster share each bundle. Without a choice of the
  // number of blocks, each thread must hold as many elements as fit, because this was fastest on an
  // H200 for norms and softmax of 500 to 8000 elements per row. Requires a choice.
  std::optional<RowCandidate> inCluster(const RowDemand& demand, RowVariant variant,
                                        const ClusterShape& shape) const {
    const int64_t rows = std::max(rowsOf(shape.bytes), std::min(shape.rows, rowsOf(kWideBytes)));
    const int64_t bundles = std::max<int64_t>(rows / vector_, 1);
    RowCandidate candidate;
    candidate.variant = variant;
    candidate.layout = layoutOf(bundles, shape.threads * cluster_ / bundles);
    if (!suitsCluster(candidate.layout) || !fits(candidate.layout, demand)) return std::nullopt;
    if (choice_->find("cluster")) return chosen(candidate);
    const bool is_full = !fits(layoutOf(bundles, candidate.layout.threads / 2), demand);
    return is_full && !hasFewBlocks(candidate) ? std::optional(candidate) : std::nullopt;
  }

 private:
  // Returns whether each block of the cluster has at least two threads per bundle, and each thread
  // an element of each of its rows.
  bool suitsCluster(const RowLayout& layout) const {
    return layout.blockThreads() >= kShortestBlock && layout.threads >= 2 * cluster_ &&
           layout.threads <= length_;
  }

  int64_t vector(bool loads_pairs) const {
    int64_t vector = std::min(16 / elements_.widest, kMostLanes);
    vector = powerOf(choice_, "vector", vector, std::min(vector, kWantedLanes));
    while (vector > 1 && vector * demands_.expensive.ops > kMostUnrolled) vector /= 2;
    while (vector > 1 && vector * demands_.expensive.accumulators > kMostStates) vector /= 2;
    while (vector > elements_.rows) vector /= 2;
    // Fast functions load vectors of four 16-bit elements from any address (hd::loadPairs()).
    constexpr int64_t kPairs = 4;
    const bool has_pairs = elements_.widest == 2 && elements_.narrowest == 2;
    if (loads_pairs && has_pairs && vector >= kPairs && !areBundlesAligned(space_, 2))
      return kPairs;
    while (vector > 1 && !areBundlesAligned(space_, vector)) vector /= 2;
    return vector;
  }

  // Returns how many neighbouring rows have an element in `bytes` contiguous bytes, rounded up to a
  // power of two. The limit is elements_.rows, also rounded up to a power of two.
  int64_t rowsOf(int64_t bytes) const {
    return std::min(powerAbove(bytes / elements_.narrowest), powerAbove(elements_.rows));
  }

  int64_t bundles() const {
    return space_.keptCount() / elements_.rows * ceilDiv(elements_.rows, vector_);
  }

  bool isLarge() const { return !isShortWork(space_); }

  bool isNarrowest() const { return vector_ == 1 && elements_.widest == 2; }

  bool hasFewBlocks(const RowCandidate& candidate) const {
    return isLarge() && ceilDiv(bundles(), candidate.layout.rows) * cluster_ < kFewBlocks;
  }

  // Returns whether there are so few neighbouring rows that their elements at one index take less
  // than a sector. Small tensors do not count as narrow.
  bool isNarrow() const { return isLarge() && elements_.rows * elements_.narrowest < kSectorBytes; }

  // Returns whether a warp accesses complete sectors. If neighbouring rows are narrow, this
  // requires a block of at least kShortestBlock threads, in which each thread has at least one
  // element of each of its rows.
  bool hasSectors(const RowLayout& layout) const {
    return !isNarrow() ||
           (layout.rows * layout.threads >= kShortestBlock && layout.threads <= length_);
  }

  // Returns the layout with at least `bundles` bundles per block, each of which `threads` threads
  // of the cluster share.
  RowLayout layoutOf(int64_t bundles, int64_t threads) const {
    RowLayout layout;
    layout.bundled = true;
    layout.vector = static_cast<int32_t>(vector_);
    layout.threads = static_cast<int32_t>(threads);
    layout.cluster = static_cast<int32_t>(cluster_);
    layout.rows = static_cast<int32_t>(std::max(bundles, kWarp * cluster_ / threads));
    layout.registers = static_cast<int32_t>(ceilDiv(length_, threads));
    layout.exact = elements_.rows % vector_ == 0;
    layout.full = layout.exact && space_.reducedCount() == threads * layout.registers;
    return layout;
  }

  // Returns the bytes of shared memory through which threads combine accumulators (RowCombiner).
  int64_t staticBytes(const RowLayout& layout, const RowDemand& demand) const {
    const int64_t parts =
        layout.rows < kWarp ? ceilDiv(layout.blockThreads(), kWarp) : layout.threads / cluster_;
    const int64_t received = cluster_ > 1 ? cluster_ : 0;
    return (parts + received) * layout.rows * vector_ * demand.accumulators * kStateBytes;
  }

  // Returns the bytes of tiles in the registers of a thread. A vector takes at least one register.
  int64_t tileBytes(const RowLayout& layout, const RowDemand& demand) const {
    const int64_t widened =
        vector_ * elements_.narrowest < kRegister ? kRegister / (vector_ * elements_.narrowest) : 1;
    return layout.registers * vector_ * demand.live_bytes * widened;
  }

  bool fits(const RowLayout& layout, const RowDemand& demand) const {
    return tileBytes(layout, demand) <= kTileBytes &&
           layout.registers * vector_ * demand.ops <= kMostUnrolled &&
           staticBytes(layout, demand) <= kSharedBytes;
  }

  // Returns the candidate that holds the tiles in registers. If there are enough registers, the
  // candidate also keeps the values that are expensive to compute.
  std::optional<RowCandidate> inRegisters(int64_t bundles) const {
    if (const auto kept = inRegisters(bundles, demands_.expensive, RowVariant::Expensive)) {
      return kept;
    }
    if (!demands_.loaded) return std::nullopt;
    return inRegisters(bundles, *demands_.loaded, RowVariant::Loaded);
  }

  std::optional<RowCandidate> inRegisters(int64_t bundles, const RowDemand& demand,
                                          RowVariant variant) const {
    // The elements of each row that a thread should hold. Single 2-byte elements take a register
    // each, so a thread should hold fewer of them.
    constexpr int64_t kSingles = 10;
    const int64_t in_flight = std::max<int64_t>(
        kBytesInFlight / (std::max<int64_t>(demand.loaded_bytes, 1) * vector_), 1);
    const int64_t wanted = isNarrowest() ? std::min(in_flight, kSingles) : in_flight;
    const bool is_wide = !begins_at_sectors_ && bundles * vector_ * elements_.narrowest >=
                                                    (isNarrowest() ? kSectorBytes : kAlignedBytes);
    const int64_t most =
        std::max<int64_t>((is_wide ? kMostWideThreads : kMostThreads) / bundles, 1);
    int64_t threads = std::min(powerAbove(ceilDiv(length_, wanted)), most);
    RowCandidate candidate;
    candidate.variant = variant;
    for (; threads <= most; threads *= 2) {
      // If fewer threads share a bundle, a block can have more bundles.
      const int64_t more = isNarrow() ? 1 : kShortestBlock / threads;
      candidate.layout = layoutOf(std::max(bundles, more), threads);
      if (hasSectors(candidate.layout) && fits(candidate.layout, demand)) return candidate;
    }
    return std::nullopt;
  }

  std::optional<RowCandidate> inSharedMemory(int64_t bundles, int64_t threads) const {
    const bool has_words = vector_ * elements_.narrowest >= kRegister;
    if (!demands_.loaded || elements_.has_repeats || !has_words || threads < 1) return std::nullopt;
    RowCandidate candidate;
    candidate.variant = RowVariant::Loaded;
    RowLayout& layout = candidate.layout;
    layout = layoutOf(bundles, std::min(threads, powerAbove(length_)));
    const int64_t bytes = int64_t{layout.threads} * layout.rows * layout.registers * vector_ *
                          demands_.loaded->loaded_bytes;
    const int64_t all = bytes + staticBytes(layout, *demands_.loaded);
    if (bytes == 0 || all > kSharedBytesOfTwo || !hasSectors(layout)) return std::nullopt;
    layout.shared_bytes = static_cast<int32_t>(bytes);
    return candidate;
  }

  // Returns the candidate with the parameters of the choice, or `best` if these do not fit.
  RowCandidate chosen(const RowCandidate& best) const {
    const RowLayout& layout = best.layout;
    const int64_t bundles = powerOf(choice_, "rows", kMostThreads, layout.rows);
    const int64_t most = kMostWideThreads * cluster_ / bundles;
    const int64_t threads = powerOf(choice_, "threads", most, layout.threads);
    if (threads > most) return best;
    if (layout.shared_bytes > 0) return inSharedMemory(bundles, threads).value_or(best);
    RowCandidate candidate = best;
    candidate.layout = layoutOf(bundles, threads);
    const bool expensive = best.variant == RowVariant::Expensive;
    const RowDemand& demand = expensive ? demands_.expensive : *demands_.loaded;
    if (cluster_ > 1 && !suitsCluster(candidate.layout)) return best;
    return fits(candidate.layout, demand) ? candidate : best;
  }

  const Space& space_;
  const BundleElements& elements_;
  const RowDemands& demands_;
  const KernelChoice* const choice_;
  const int64_t cluster_;  // blocks that share each bundle (RowLayout::cluster)
  const int64_t length_;   // elements of a row
  const int64_t vector_;   // rows of a bundle (RowLayout::vector)
  const bool begins_at_sectors_;
};

// Returns the best layout in which one block holds each bundle.
std::optional<RowCandidate> inOneBlock(const Space& rows, const BundleElements& elements,
                                       const RowDemands& demands, const KernelChoice* choice) {
  // Unaligned elements of 2 bytes: if rows are long, bundles of one row are faster than pairs, but
  // do not fit in shared memory. On an H200, norms of 483 and 544 elements took 0.62 to 0.78 times
  // as long.
  const bool names_pairs = choice != nullptr && choice->find("vector").value_or(1) > 1;
  const bool needs_pairs = names_pairs || rows.reducedCount() < kLongRow;
  std::optional<RowCandidate> found;
  for (const bool loads_pairs : {false, true}) {
    if (found || (needs_pairs && !loads_pairs)) continue;
    found = CudaBundles(rows, elements, demands, choice, 1, loads_pairs).choose();
  }
  return found;
}

// Returns the first layout that suits clusters of `fewest` to `most` blocks.
std::optional<RowCandidate> inClusters(const Space& rows, const BundleElements& elements,
                                       const RowDemands& demands, const KernelChoice& choice,
                                       int64_t fewest, int64_t most) {
  for (const RowVariant variant : {RowVariant::Expensive, RowVariant::Loaded}) {
    if (variant == RowVariant::Loaded && !demands.loaded) continue;
    const RowDemand& demand = variant == RowVariant::Loaded ? *demands.loaded : demands.expensive;
    for (const ClusterShape& shape : kClusterShapes) {
      for (int64_t blocks = fewest; blocks <= most; blocks *= 2) {
        const CudaBundles bundles(rows, elements, demands, &choice, blocks, false);
        if (const auto found = bundles.inCluster(demand, variant, shape)) return found;
      }
    }
  }
  return std::nullopt;
}

// Returns the best layout in which clusters share bundles. Returns nullopt if `alone`, the best
// layout in which one block holds each bundle, is better. Clusters pay if rows are long and begin
// at unaligned addresses. On an H200 (bench/results/rows), norms and softmax then took 0.71 to 0.98
// times as long. If rows are aligned, clusters pay only if no block can hold a bundle, and if the
// kernel keeps no computed values: norms took 0.88 to 0.91 times as long as several launches, but
// softmax 1.0 to 1.07 times. A vector takes one register.
std::optional<RowCandidate> inBestCluster(const Space& rows, const BundleElements& elements,
                                          const RowDemands& demands,
                                          const std::optional<RowCandidate>& alone) {
  const bool is_long = rows.reducedCount() >= kLongRow && !isShortWork(rows);
  const bool is_held = alone.has_value() || demands.expensive.kept_bytes > 0;
  if (!rows.clusters || !is_long || (areBundlesAligned(rows, 2) && is_held)) return std::nullopt;
  const int64_t lanes = std::max<int64_t>(kRegister / elements.widest, 1);
  return inClusters(rows, elements, demands, {"rows", {{"vector", lanes}}}, 2,
                    kMostBlocksOfCluster);
}

}  // namespace
}  // namespace bundles

std::optional<RowCandidate> chooseCudaBundles(const Space& rows, const BundleElements& elements,
                                              const RowDemands& demands,
                                              const KernelChoice* choice) {
  const int64_t most = rows.clusters ? row_limits::kMostBlocksOfCluster : 1;
  const int64_t blocks = powerOf(choice, "cluster", most, 1);
  if (blocks > 1) {
    const auto found = bundles::inClusters(rows, elements, demands, *choice, blocks, blocks);
    if (found) return found;
  }
  const std::optional<RowCandidate> alone = bundles::inOneBlock(rows, elements, demands, choice);
  if (choice != nullptr) return alone;
  const std::optional<RowCandidate> shared = bundles::inBestCluster(rows, elements, demands, alone);
  return shared ? shared : alone;
}

}  // namespace heddle::codegen
