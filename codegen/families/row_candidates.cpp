#include "codegen/families/row_candidates.h"

#include <algorithm>
#include <bit>

#include "ir/base/ceil_div.h"

namespace heddle::codegen {
namespace {

// Bytes of tiles that one thread may hold. Its registers have 256 bytes if a block has 1024
// threads, and the body needs some of them.
constexpr int64_t kTileBytes = 128;
// The same if kColumnThreads or kAheadThreads threads share a multiprocessor. More elements per
// thread cost fewer instructions, because threads exchange the parts of each row. But longer blocks
// store fewer sums of columns. Tiles of kWantedColumnBytes are a compromise for rows that more
// threads can share.
constexpr int32_t kColumnThreads = 512;
constexpr int64_t kColumnTileBytes = 384;
constexpr int64_t kWantedColumnBytes = 340;
constexpr int32_t kAheadThreads = 384;
constexpr int64_t kAheadTileBytes = 576;
// Bytes that one thread loads before it waits, so that enough loads are in flight.
constexpr int64_t kBytesInFlight = 64;
// Operations of a body (RowDemand::ops) times the elements of a thread, which the compiler unrolls.
// More take seconds to compile.
constexpr int64_t kMostUnrolled = 4096;
// Shared memory of a block without an opt-in. Each accumulator takes 8 bytes per warp.
constexpr int64_t kSharedBytes = 48 << 10;
constexpr int64_t kMultiprocessors = 132;  // of an H100
constexpr int64_t kMostThreads = 1024;
constexpr int64_t kWarp = 32;
constexpr int64_t kLoopThreads = 512;
constexpr int64_t kShortestBlock = 128;
// With fewer rows than this, one row per block leaves multiprocessors idle (132 on an H100).
constexpr int64_t kFewRows = 132;
// Threads that read neighbouring vectors of a row together use complete sectors of memory. With
// kManyThreads threads, each processor of the GPU has more work than it can start at once.
constexpr int64_t kFewestThreads = 4;
constexpr int64_t kManyThreads = int64_t{132} * 2048 * 2;
// Cpp: the most elements of a row that arrays hold, so that they stay in the L2 cache, and the most
// bytes of all arrays, which are on the stack. And the fewest rows that keep the threads of a pool
// busy, unless all rows together are short.
constexpr int64_t kMostKept = 16384;
constexpr int64_t kMostArrayBytes = 256 << 10;
constexpr int64_t kFewCpuRows = 64;
constexpr int64_t kShortWork = 1 << 18;
constexpr int64_t kShortestCpuColumns = 16;

// Returns whether the elements of a row are neighbours in every tensor that changes along the row.
bool isContiguousAlongRow(const Space& space) {
  const size_t lane = space.extents.size() - 1;
  if (space.extents[lane] == 1) return true;
  return std::all_of(space.tensors.begin(), space.tensors.end(),
                     [&](const SpaceTensor& t) { return t.strides[lane] <= 1; });
}

// Returns whether all vectors of a tensor along the row begin at aligned addresses.
bool hasWholeVectors(const Space& space, int64_t vector) {
  for (const SpaceTensor& t : space.tensors) {
    if (t.strides.back() != 1) continue;
    const int64_t bytes = std::min<int64_t>(vector * sizeOf(t.dtype), kFullAlignment);
    if (t.alignment % bytes != 0) return false;
    for (size_t axis = 0; axis + 1 < space.extents.size(); ++axis) {
      if (t.strides[axis] % vector != 0) return false;
    }
  }
  return true;
}

// The fewest vectors of a row that begins at an aligned address before the row. The first and the
// last vector are slow. Each pass over the row needs their masks again.
int64_t shortestShifted(bool several_passes) { return several_passes ? 64 : 4; }

int64_t vectorsPerRow(const Space& space, int64_t vector) {
  int64_t vectors = ceilDiv(space.extents.back(), vector);
  for (size_t i = space.kept; i + 1 < space.extents.size(); ++i) {
    vectors *= space.extents[i];
  }
  return vectors;
}

// Returns a smaller number of threads if far fewer of them are then idle. For example, 192 vectors
// are 3 for each of 64 threads, and 34 vectors are 3 for each of 16 threads with 14 idle places.
int64_t fuller(int64_t threads, int64_t vectors, int64_t most) {
  constexpr double kGain = 1.15;
  const int64_t fewest = std::min<int64_t>(threads, 8);  // pieces of 128 bytes
  const auto fullness = [vectors](int64_t n) {
    return static_cast<double>(vectors) / static_cast<double>(n * ceilDiv(vectors, n));
  };
  int64_t best = threads;
  for (int64_t n = threads / 2; n >= fewest && ceilDiv(vectors, n) <= most; n /= 2) {
    if (fullness(n) > kGain * fullness(best)) best = n;
  }
  return best;
}

// Chooses whether a block with columns loads its next row, and how many blocks there are. All of
// them run at the same time.
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

// The vectors of a row.
struct Vectors {
  int64_t length = 1;
  bool shifted = false;  // RowLayout::shifted
};

// Returns the longest vectors of which a thread can load several together. `ops` are the operations
// of the longest body. Rows with columns are never shifted: a thread adds the same elements of all
// its rows, and shifted rows would give it different elements.
Vectors vectorsOf(const Space& space, int64_t ops, bool several_passes) {
  int64_t widest = 1;
  for (const SpaceTensor& t : space.tensors) {
    if (t.strides.back() == 1 && t.column < 0) widest = std::max(widest, sizeOf(t.dtype));
  }
  int64_t length = std::min<int64_t>(16 / widest, 8);
  while (length > 1 && length * ops > kMostUnrolled) length /= 2;
  const bool one_axis = space.extents.size() == space.kept + 1;
  if (length > 1 && one_axis && !hasColumns(space) && !hasWholeVectors(space, length) &&
      space.extents.back() >= shortestShifted(several_passes) * length) {
    return {length, true};
  }
  while (length > 1 && (length > space.extents.back() || !hasWholeVectors(space, length))) {
    length /= 2;
  }
  return {length, false};
}

// Returns whether the choice asks for a loop over the parts of a row.
bool isLooped(const KernelChoice* choice) {
  return choice != nullptr && choice->find("looped").value_or(0) != 0;
}

std::optional<RowCandidate> cudaCandidate(const Space& space, const RowDemand& demand,
                                          const KernelChoice* choice) {
  auto [vector, shifted] = vectorsOf(space, demand.ops, demand.several_passes);
  if (!shifted) vector = powerOf(choice, "vector", vector, vector);
  // A shifted row may need one more vector.
  const int64_t vectors =
      shifted ? ceilDiv(space.extents.back() + vector - 1, vector) : vectorsPerRow(space, vector);
  const auto fitting = [vector = vector](int64_t limit, int64_t per_element) {
    return std::max<int64_t>(limit / (std::max<int64_t>(per_element, 1) * vector), 1);
  };
  const int64_t tile_bytes = hasColumns(space) ? kColumnTileBytes : kTileBytes;
  const int64_t most =
      std::min(fitting(tile_bytes, demand.live_bytes), fitting(kMostUnrolled, demand.ops));
  const int64_t wanted = std::min(hasColumns(space) ? fitting(kWantedColumnBytes, demand.live_bytes)
                                                    : fitting(kBytesInFlight, demand.loaded_bytes),
                                  most);
  // Few threads per row waste less time in the exchange of parts. A warp per row is better if there
  // are not enough rows for all threads of the GPU.
  const int64_t least = space.keptCount() * kFewestThreads >= kManyThreads ? kFewestThreads : 32;
  // Each row of threads stores its own sums of columns. Blocks with one row have the fewest.
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
  threads = fuller(threads, vectors, most);
  // A block of kMostThreads threads is alone on its multiprocessor. While it exchanges parts of its
  // row, nothing would be loaded.
  if (threads == kMostThreads && ceilDiv(vectors, threads / 2) <= most) threads /= 2;
  // One thread reads a row of a few elements, so that no time goes into the exchange of parts.
  constexpr int64_t kFewElements = 16;
  if (vector == 1 && vectors <= std::min(kFewElements, most)) threads = 1;
  const auto warps =
      static_cast<uint64_t>(kSharedBytes / (8 * std::max<int64_t>(demand.accumulators, 1)));
  const int64_t most_threads = std::min(hasColumns(space) ? int64_t{kColumnThreads} : kMostThreads,
                                        32 * static_cast<int64_t>(std::bit_floor(warps)));
  threads = powerOf(choice, "threads", most_threads, std::min(threads, most_threads));
  int64_t registers = std::max<int64_t>(ceilDiv(vectors, threads), 1);  // a row may be empty
  if (registers > most || isLooped(choice)) {
    candidate.looped = true;
    threads = powerOf(choice, "threads", most_threads, std::min(kLoopThreads, most_threads));
    registers = wanted;
  }
  layout.vector = static_cast<int32_t>(vector);
  layout.threads = static_cast<int32_t>(threads);
  layout.registers = static_cast<int32_t>(registers);
  // A block consists of complete warps.
  layout.rows =
      static_cast<int32_t>(std::max(powerOf(choice, "rows", most_threads / threads,
                                            std::max<int64_t>(kShortestBlock / threads, 1)),
                                    std::max<int64_t>(kWarp / threads, 1)));
  layout.shifted = shifted;
  layout.exact = !shifted && space.extents.back() % vector == 0;
  layout.full = layout.exact && !candidate.looped && vectors == threads * registers;
  const bool has_few = choice == nullptr && space.keptCount() < kFewRows;
  if (candidate.looped && (hasColumns(space) || has_few)) return std::nullopt;
  if (hasColumns(space)) {
    // Few blocks leave multiprocessors idle, and blocks with many rows store many sums of short
    // columns. Separate launches divide the columns among all multiprocessors.
    constexpr int32_t kMostRows = 2;
    const int64_t groups = ceilDiv(space.keptCount(), layout.rows);
    const bool is_large = space.keptCount() * space.reducedCount() > kShortWork;
    if (is_large && (groups < kFewRows || layout.rows > kMostRows)) return std::nullopt;
    loopOverRows(space, demand, candidate);
    return candidate;
  }
  return candidate;
}

std::optional<RowCandidate> cpuCandidate(const Space& space, const RowDemand& demand,
                                         const KernelChoice* choice) {
  const int64_t rows = space.keptCount();
  // The columns of short rows are faster without the rows.
  if (hasColumns(space) && space.reducedCount() < kShortestCpuColumns) return std::nullopt;
  const bool has_few = rows < kFewCpuRows && rows * space.reducedCount() > kShortWork;
  if (has_few && choice == nullptr) return std::nullopt;
  RowCandidate candidate;
  candidate.layout.vector = 16;
  const int64_t chunk = cpuChunk(space);
  const int64_t elements = vectorsPerRow(space, chunk) * chunk;
  const auto capacity =
      static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(elements, 64))));
  candidate.looped =
      elements > kMostKept || capacity * demand.kept_bytes > kMostArrayBytes || isLooped(choice);
  if (!candidate.looped) candidate.layout.capacity = capacity;
  return candidate;
}

}  // namespace

bool hasColumns(const Space& space) {
  return std::any_of(space.tensors.begin(), space.tensors.end(),
                     [](const SpaceTensor& t) { return t.column >= 0; });
}

int64_t cpuChunk(const Space& space) {
  constexpr int64_t kMost = 4096;
  return std::clamp<int64_t>(space.extents.back(), 1, kMost);
}

int64_t cpuTileRows(const Space& space) {
  constexpr int64_t kTileElements = 32768;
  constexpr int64_t kMostParts = 64;
  const int64_t rows =
      std::max<int64_t>(1, kTileElements / std::max<int64_t>(space.reducedCount(), 1));
  return hasColumns(space) ? std::max(rows, ceilDiv(space.keptCount(), kMostParts)) : rows;
}

Space withRows(Space space) {
  if (!space.hasReduced()) --space.kept;
  return space;
}

bool hasUnalignedRows(const Space& space, Target target) {
  // Vectors. A reduction uses the masks of the first and last vector once, a pointwise kernel
  // twice.
  const int64_t shortest = space.hasReduced() ? 16 : 32;
  if (target != Target::Cuda || space.extents.size() < 2) return false;
  const Space rows = withRows(space);
  return isContiguousAlongRow(rows) && rows.keptCount() >= kFewRows &&
         vectorsOf(rows, 1, false).shifted &&
         vectorsPerRow(rows, vectorsOf(rows, 1, false).length) >= shortest;
}

std::optional<RowCandidate> chooseRows(const Space& rows, Target target, const RowDemands& demands,
                                       const KernelChoice* choice) {
  if (!isContiguousAlongRow(rows)) return std::nullopt;
  if (!isFamily(choice, "rows") || hasColumns(rows)) choice = nullptr;
  const auto best = [&](const RowDemand& demand, RowVariant variant) {
    std::optional<RowCandidate> found = target == Target::Cuda ? cudaCandidate(rows, demand, choice)
                                                               : cpuCandidate(rows, demand, choice);
    if (found) found->variant = variant;
    return found;
  };
  // Blocks with columns have registers for products of loaded tiles, unless the rows are long.
  std::optional<RowCandidate> chosen;
  if (demands.many_ops) chosen = best(*demands.many_ops, RowVariant::ManyOps);
  if (!chosen || !chosen->ahead) chosen = best(demands.expensive, RowVariant::Expensive);
  return chosen;
}

KernelChoice choiceOf(const RowCandidate& candidate, Target target) {
  KernelChoice choice{"rows", {}};
  if (target == Target::Cuda) {
    const RowLayout& layout = candidate.layout;
    choice.parameters = {{"vector", layout.vector},
                         {"threads", layout.threads},
                         {"registers", layout.registers},
                         {"rows", layout.rows}};
  }
  choice.set("looped", candidate.looped ? 1 : 0);
  return choice;
}

}  // namespace heddle::codegen
