#include "codegen/families/rows/bundles.h"

#include <algorithm>
#include <bit>

#include "codegen/families/rows/row_limits.h"
#include "ir/base/ceil_div.h"

namespace heddle::codegen {
namespace bundles {
namespace {

using row_limits::kBytesInFlight;
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
// Cuda: the longest vector without a KernelChoice, and the longest one that a choice may name. Each
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
// Cpp: with fewer bundles than this, some threads of the pool are idle.
constexpr int64_t kFewBundles = 64;
// Cpp: the largest size of all arrays of a bundle together. Up to this size, the arrays stay in the
// L2 cache of a core.
constexpr int64_t kMostArrayBytes = 640 << 10;
constexpr int64_t kLineBytes = 64;
constexpr int64_t kMostCpuLanes = 128;

int64_t powerAbove(int64_t n) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(n, 1))));
}
int64_t powerBelow(int64_t n) {
  return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(n, 1))));
}

// Facts about the *full* tensors, which change both from row to row and along the rows.
struct Elements {
  int64_t rows = 1;          // extent of the axis along which rows are neighbours
  int64_t narrowest = 8;     // bytes of the smallest element
  int64_t widest = 1;        // bytes of the largest element
  bool has_repeats = false;  // a full tensor has the same element for all rows of a bundle
};

// Returns whether the tensor is full: it changes along a kept axis and along a reduced axis.
bool changesEverywhere(const SpaceTensor& tensor, const Space& space) {
  const auto changes = [](int64_t stride) { return stride != 0; };
  const auto kept = tensor.strides.begin() + static_cast<ptrdiff_t>(space.kept);
  return std::any_of(tensor.strides.begin(), kept, changes) &&
         std::any_of(kept, tensor.strides.end(), changes);
}

// Returns the facts. Returns nullopt if there are no neighbouring rows, or if they are not
// neighbours in memory.
std::optional<Elements> elementsOf(const Space& space) {
  if (space.kept == 0 || !space.hasReduced() || space.extents[space.kept - 1] < 2) {
    return std::nullopt;
  }
  const size_t lane = space.kept - 1;
  Elements elements;
  elements.rows = space.extents[lane];
  bool any = false;
  for (const SpaceTensor& tensor : space.tensors) {
    if (tensor.strides[lane] > 1) return std::nullopt;
    if (!changesEverywhere(tensor, space)) continue;
    if (tensor.strides[lane] == 0) {
      elements.has_repeats = true;
      continue;
    }
    any = true;
    elements.narrowest = std::min(elements.narrowest, sizeOf(tensor.dtype));
    elements.widest = std::max(elements.widest, sizeOf(tensor.dtype));
  }
  return any ? std::optional(elements) : std::nullopt;
}

// Returns whether all vectors of the full tensors begin at aligned addresses.
bool areAligned(const Space& space, int64_t vector) {
  const size_t lane = space.kept - 1;
  return std::all_of(space.tensors.begin(), space.tensors.end(), [&](const SpaceTensor& t) {
    if (t.strides[lane] != 1 || !changesEverywhere(t, space)) return true;
    for (size_t axis = 0; axis < t.strides.size(); ++axis) {
      if (axis != lane && t.strides[axis] % vector != 0) return false;
    }
    return t.alignment % std::min<int64_t>(vector * sizeOf(t.dtype), kFullAlignment) == 0;
  });
}

class CudaBundles {
 public:
  CudaBundles(const Space& space, const Elements& elements, const RowDemands& demands,
              const KernelChoice* choice, bool loads_pairs)
      : space_(space),
        elements_(elements),
        demands_(demands),
        choice_(choice),
        length_(std::max<int64_t>(space.reducedCount(), 1)),
        vector_(vector(loads_pairs)),
        begins_at_sectors_(vector_ > 1 &&
                           areAligned(space_, std::max(vector_, kSectorBytes / elements.widest))) {}

  // Tries wide accesses first. If long rows need shared memory and vectors are aligned, a block may
  // use half of each sector. The block that uses the other half runs at the same time, and finds
  // the sector in the cache. Loads of half sectors would need too many accesses if vectors are not
  // aligned.
  std::optional<RowCandidate> choose() const {
    const bool are_aligned = vector_ > 1 && areAligned(space_, vector_);
    const int64_t wide = begins_at_sectors_ ? kAlignedBytes
                         : isNarrowest()    ? kSectorBytes
                                            : kWideBytes;
    std::optional<RowCandidate> found;
    for (const bool shared : {false, true}) {
      const int64_t least = rowsOf(shared && are_aligned ? kSectorBytes / 2 : kSectorBytes);
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

 private:
  int64_t vector(bool loads_pairs) const {
    int64_t vector = std::min(16 / elements_.widest, kMostLanes);
    vector = powerOf(choice_, "vector", vector, std::min(vector, kWantedLanes));
    while (vector > 1 && vector * demands_.expensive.ops > kMostUnrolled) vector /= 2;
    while (vector > 1 && vector * demands_.expensive.accumulators > kMostStates) vector /= 2;
    while (vector > elements_.rows) vector /= 2;
    // Fast functions load vectors of four 16-bit elements from any address (hd::loadPairs()).
    constexpr int64_t kPairs = 4;
    const bool has_pairs = elements_.widest == 2 && elements_.narrowest == 2;
    if (loads_pairs && has_pairs && vector >= kPairs && !areAligned(space_, 2)) return kPairs;
    while (vector > 1 && !areAligned(space_, vector)) vector /= 2;
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

  bool isLarge() const { return space_.keptCount() * space_.reducedCount() > kShortWork; }

  bool isNarrowest() const { return vector_ == 1 && elements_.widest == 2; }

  bool hasFewBlocks(const RowCandidate& candidate) const {
    return isLarge() && ceilDiv(bundles(), candidate.layout.rows) < kFewBlocks;
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
  // share.
  RowLayout layoutOf(int64_t bundles, int64_t threads) const {
    RowLayout layout;
    layout.bundled = true;
    layout.vector = static_cast<int32_t>(vector_);
    layout.threads = static_cast<int32_t>(threads);
    layout.rows = static_cast<int32_t>(std::max(bundles, kWarp / threads));
    layout.registers = static_cast<int32_t>(ceilDiv(length_, threads));
    layout.exact = elements_.rows % vector_ == 0;
    layout.full = layout.exact && space_.reducedCount() == threads * layout.registers;
    return layout;
  }

  // Returns the bytes of shared memory through which threads combine accumulators (RowCombiner).
  int64_t staticBytes(const RowLayout& layout, const RowDemand& demand) const {
    const int64_t parts =
        layout.rows < kWarp ? ceilDiv(layout.threads * layout.rows, kWarp) : layout.threads;
    return parts * layout.rows * vector_ * demand.accumulators * kStateBytes;
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
    const int64_t threads = powerOf(choice_, "threads", kMostWideThreads / bundles, layout.threads);
    if (threads * bundles > kMostWideThreads) return best;
    if (layout.shared_bytes > 0) return inSharedMemory(bundles, threads).value_or(best);
    RowCandidate candidate = best;
    candidate.layout = layoutOf(bundles, threads);
    const bool expensive = best.variant == RowVariant::Expensive;
    const RowDemand& demand = expensive ? demands_.expensive : *demands_.loaded;
    return fits(candidate.layout, demand) ? candidate : best;
  }

  const Space& space_;
  const Elements& elements_;
  const RowDemands& demands_;
  const KernelChoice* const choice_;
  const int64_t length_;  // elements of a row
  const int64_t vector_;  // rows of a bundle (RowLayout::vector)
  const bool begins_at_sectors_;
};

// Returns the number of elements of each array. It is rounded up, so that similar sizes have the
// same kernel text.
int64_t capacityFor(int64_t elements) {
  const int64_t step = std::max<int64_t>(powerBelow(elements) / 4, 16);
  return ceilDiv(std::max<int64_t>(elements, 1), step) * step;
}

std::optional<RowCandidate> cpuBundles(const Space& space, const Elements& elements,
                                       const RowDemand& demand, const KernelChoice* choice) {
  const int64_t length = space.reducedCount();
  const int64_t outer = space.keptCount() / elements.rows;
  const bool is_large = space.keptCount() * length > kShortWork;
  const int64_t least = kLineBytes / elements.narrowest;
  const int64_t most = std::max(powerOf(choice, "vector", kMostCpuLanes, kMostCpuLanes), least);
  for (int64_t lanes = most; lanes >= least; lanes /= 2) {
    const int64_t capacity = capacityFor(length * std::min(lanes, elements.rows));
    if (capacity * (demand.kept_bytes + demand.loaded_bytes) > kMostArrayBytes) continue;
    if (is_large && choice == nullptr && outer * ceilDiv(elements.rows, lanes) < kFewBundles) {
      continue;
    }
    RowCandidate candidate;
    candidate.layout.bundled = true;
    candidate.layout.vector = static_cast<int32_t>(lanes);
    candidate.layout.capacity = capacity;
    return candidate;
  }
  return std::nullopt;
}

}  // namespace
}  // namespace bundles

std::optional<RowCandidate> chooseBundles(const Space& rows, Target target,
                                          const RowDemands& demands, const KernelChoice* choice) {
  if (!isFamily(choice, "rows")) choice = nullptr;
  if (!demands.expensive.joined_sweeps || hasColumns(rows)) return std::nullopt;
  const std::optional<bundles::Elements> elements = bundles::elementsOf(rows);
  if (!elements) return std::nullopt;
  if (target == Target::Cpp) return bundles::cpuBundles(rows, *elements, demands.expensive, choice);
  // Unaligned elements of 2 bytes: if rows are long, bundles of one row are faster than pairs, but
  // do not fit in shared memory. On an H200, norms of 483 and 544 elements took 0.62 to 0.78 times
  // as long.
  constexpr int64_t kLongRow = 256;
  const bool names_pairs = choice != nullptr && choice->find("vector").value_or(1) > 1;
  const bool needs_pairs = names_pairs || rows.reducedCount() < kLongRow;
  std::optional<RowCandidate> found;
  for (const bool loads_pairs : {false, true}) {
    if (found || (needs_pairs && !loads_pairs)) continue;
    found = bundles::CudaBundles(rows, *elements, demands, choice, loads_pairs).choose();
  }
  return found;
}

int64_t cpuBundleRows(const RowLayout& layout, const Space& rows) {
  return std::clamp<int64_t>(rows.extents[rows.kept - 1], 1, layout.vector);
}

int64_t cpuTileBundles(const RowLayout& layout, const Space& rows) {
  constexpr int64_t kTileElements = 32768;
  const int64_t elements = std::max<int64_t>(rows.reducedCount(), 1) * cpuBundleRows(layout, rows);
  return std::max<int64_t>(1, kTileElements / elements);
}

}  // namespace heddle::codegen
