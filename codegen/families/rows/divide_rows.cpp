#include "codegen/families/rows/divide_rows.h"

#include <algorithm>

#include "codegen/families/rows/row_limits.h"
#include "codegen/families/rows/row_vectors.h"
#include "codegen/families/rows/rows.h"
#include "ir/base/ceil_div.h"

namespace heddle::codegen {
namespace {

// Bytes of inputs per work item (codegen/tile/divided_rows.h). Smaller items would spend too much
// time on tickets and waits. With larger items, more bytes would lie between two sweeps over the
// same part. Rows of kLongRowBytes or more have items of kLongItemBytes. On an H200, such rows took
// 2 % less time than with items of kItemBytes.
constexpr int64_t kItemBytes = 64 << 10;
constexpr int64_t kLongItemBytes = 2 * kItemBytes;
constexpr int64_t kLongRowBytes = 64 * kItemBytes;
// Tickets and indices of states have 32 bits. The limit leaves room for the tickets that the blocks
// take after the last item.
constexpr int64_t kMostItems = 1 << 30;
// One block per row is good enough for shorter rows.
constexpr int64_t kShortestRowBytes = 256 << 10;
// Smaller inputs stay in the L2 cache, even if blocks do not share rows.
constexpr int64_t kFewestBytes = 16 << 20;
// A bit more than half of the L2 cache of an H100. The rest is for outputs. On an H200, log_softmax
// of 16 rows of 10 MB, with 27e6 bytes between the sweeps, took 0.64 times as long as one launch
// per sweep.
constexpr double kMostBytesBetween = 28e6;
// All rows read some inputs, such as weights. If a thread loads this many times the bytes of its
// own row, these inputs fill the L2 cache.
constexpr int64_t kManyLoads = 3;

bool changes(const SpaceTensor& tensor, size_t first, size_t end) {
  return std::any_of(tensor.strides.begin() + first, tensor.strides.begin() + end,
                     [](int64_t stride) { return stride != 0; });
}

// Returns the bytes that a thread loads per element of a row, from all inputs that change along the
// row.
int64_t loadedBytes(const Space& rows) {
  int64_t bytes = 0;
  for (const SpaceTensor& tensor : rows.tensors) {
    const bool has_row = changes(tensor, rows.kept, rows.extents.size());
    if (!tensor.output && has_row) bytes += sizeOf(tensor.dtype);
  }
  return std::max<int64_t>(bytes, 1);
}

// Returns the bytes per element of a row in the inputs that differ both between rows and along the
// row. The other inputs are much smaller, so they stay in a cache.
int64_t inputBytes(const Space& rows) {
  int64_t bytes = 0;
  for (const SpaceTensor& tensor : rows.tensors) {
    const bool has_own = rows.keptCount() == 1 || changes(tensor, 0, rows.kept);
    const bool has_row =
        rows.reducedCount() == 1 || changes(tensor, rows.kept, rows.extents.size());
    if (!tensor.output && has_own && has_row) bytes += sizeOf(tensor.dtype);
  }
  return bytes;
}

}  // namespace

std::optional<RowCandidate> divideRows(const RowCandidate& looped, const Space& rows,
                                       const RowDemands& demands, const KernelChoice* choice) {
  const bool suits = looped.looped && looped.layout.rows == 1 && !looped.layout.bundled &&
                     looped.layout.threads > 32 && !hasColumns(rows) &&
                     demands.expensive.joined_sweeps;
  if (!suits || isEmpty(rows) || inputBytes(rows) == 0) return std::nullopt;
  RowCandidate divided = looped;
  RowLayout& layout = divided.layout;
  layout.threads = std::min(layout.threads, kDividedThreads);
  layout.divided.sweeps = demands.sweeps.exchanges + 1;
  const auto flag = [choice](const char* name, bool otherwise) {
    return choice == nullptr ? otherwise : choice->find(name).value_or(otherwise) != 0;
  };
  layout.divided.streams = flag("streams", true);
  layout.divided.accumulators = static_cast<int32_t>(demands.expensive.accumulators);
  // A thread loads vectors of all inputs before it waits. Three or more sweeps need more registers
  // for addresses and results, so the thread then loads half as many bytes.
  const int64_t vector_bytes = layout.vector * loadedBytes(rows);
  const int64_t in_flight =
      layout.divided.sweeps > 2 ? row_limits::kBytesInFlight / 2 : row_limits::kBytesInFlight;
  const int64_t unrolled =
      row_limits::kMostUnrolled / (layout.vector * std::max<int64_t>(demands.expensive.ops, 1));
  layout.registers =
      static_cast<int32_t>(std::max<int64_t>(std::min(in_flight / vector_bytes, unrolled), 1));
  const int64_t vectors = reducedItems(rowSchedule(layout, rows, Target::Cuda), rows);
  const int64_t step = int64_t{layout.threads} * layout.registers;
  const bool is_long = vectors * vector_bytes >= kLongRowBytes;
  // With reversed parts, softmax of f32[128, 1048576] took 0.97 times as long on an H200. Shorter
  // rows, and a single row, took 0.99 to 1.03 times as long.
  layout.divided.reversed = flag("reversed", rows.keptCount() > 1);
  const int64_t item = (is_long ? kLongItemBytes : kItemBytes) / vector_bytes;
  // Few rows have smaller items, so that all blocks have work.
  const int64_t fewest = ceilDiv(dividedBlocks(layout.threads), rows.keptCount());
  const int64_t parts = std::max(ceilDiv(vectors, std::max<int64_t>(item / step, 1) * step),
                                 std::min(fewest, vectors / step));
  if (parts < 2 && (choice == nullptr || !choice->find("parts"))) return std::nullopt;
  layout.divided.parts = numberOf(choice, "parts", vectors, parts);
  layout.blocks = std::min(dividedBlocks(layout.threads), rows.keptCount() * layout.divided.parts);
  const int64_t behind = distanceOf(layout.divided, layout.blocks) * (layout.divided.sweeps - 1);
  const auto per_sweep = static_cast<double>(rows.keptCount() * layout.divided.parts + behind);
  if (per_sweep * layout.divided.sweeps >= kMostItems) return std::nullopt;
  return divided;
}

double bytesBetweenSweeps(const RowLayout& divided, const Space& rows) {
  const double part = static_cast<double>(rows.reducedCount() * inputBytes(rows)) /
                      static_cast<double>(divided.divided.parts);
  const int64_t distance = distanceOf(divided.divided, divided.blocks);
  return part * static_cast<double>(distance * (divided.divided.sweeps - 1));
}

bool paysToDivide(const RowCandidate& divided, const Space& rows) {
  const int64_t row_bytes = rows.reducedCount() * inputBytes(rows);
  if (loadedBytes(rows) >= kManyLoads * inputBytes(rows)) return false;
  return rows.keptCount() > 1 && row_bytes >= kShortestRowBytes &&
         row_bytes * rows.keptCount() >= kFewestBytes &&
         bytesBetweenSweeps(divided.layout, rows) <= kMostBytesBetween;
}

KernelChoice dividedChoice(const RowLayout& layout) {
  return {"divided",
          {{"vector", layout.vector},
           {"threads", layout.threads},
           {"parts", layout.divided.parts},
           {"streams", layout.divided.streams ? 1 : 0},
           {"reversed", layout.divided.reversed ? 1 : 0}}};
}

namespace {

// Returns how many blocks should share each row as a cluster. Returns 1 if one block per row is
// better, or if rows are divided instead. One block is better for rows of up to kMostAloneBytes,
// which it holds in shared memory, and for rows that are read only once because joint reductions
// need no second sweep. Longer rows are divided among as many blocks as bring the bytes per block
// down to kMostSharedBytes. On an H200 (bench/results/rows), clusters took the following fractions
// of the time of the kernels that would be chosen without them: 0.98 for rows of 100 and 131 KB,
// 0.68 to 0.87 for 183 to 524 KB, 0.88 to 0.94 for 0.8 to 0.94 MB. With rows of 64 KB, softmax took
// 1.11 times as long.
int64_t clusterFor(const Space& rows, Target target, const RowDemands& demands) {
  constexpr int64_t kMostAloneBytes = 96 << 10;
  constexpr int64_t kMostSharedBytes = 64 << 10;
  const bool suits = target == Target::Cuda && rows.clusters && !hasColumns(rows) &&
                     isContiguousAlongRow(rows) && demands.loaded &&
                     demands.expensive.joined_sweeps;
  if (!suits) return 1;
  const int64_t bytes = rows.reducedCount() * demands.loaded->loaded_bytes;
  if (bytes <= kMostAloneBytes) return 1;
  int64_t blocks = 2;
  while (blocks < row_limits::kMostBlocksOfCluster && bytes > blocks * kMostSharedBytes)
    blocks *= 2;
  // With 128 blocks, an rms_norm took 0.61 times as long as in one launch per sweep (H200).
  constexpr int64_t kFewestBlocks = 128;
  return rows.keptCount() * blocks >= kFewestBlocks ? blocks : 1;
}

// Returns the candidate in which blocks share rows, or nullopt if there is none. `choice` is
// nullptr or has the family "divided".
std::optional<RowCandidate> dividedCandidate(const Space& rows, Target target,
                                             const RowDemands& demands,
                                             const KernelChoice* choice) {
  if (target != Target::Cuda || hasColumns(rows)) return std::nullopt;
  KernelChoice looped = choice == nullptr ? KernelChoice{} : *choice;
  looped.family = "rows";
  looped.set("looped", 1);
  looped.set("rows", 1);
  const std::optional<RowCandidate> one = chooseWholeRows(rows, target, demands, &looped);
  return one ? divideRows(*one, rows, demands, choice) : std::nullopt;
}

}  // namespace

std::optional<RowCandidate> chooseRows(const Space& rows, Target target, const RowDemands& demands,
                                       const KernelChoice* choice) {
  if (isFamily(choice, "divided")) {
    if (auto divided = dividedCandidate(rows, target, demands, choice)) return divided;
  }
  if (isFamily(choice, "rows")) return chooseWholeRows(rows, target, demands, choice);
  // Kernels of the family "loops" load vectors of neighbouring rows of one element each. On an
  // H200, a norm of such rows then took 0.87 times as long.
  const bool is_one_sweep = demands.expensive.several_sweeps && !demands.expensive.joined_sweeps;
  if (target == Target::Cuda && rows.reducedCount() == 1 && is_one_sweep) return std::nullopt;
  if (const int64_t blocks = clusterFor(rows, target, demands); blocks > 1) {
    const KernelChoice cluster{"rows", {{"cluster", blocks}}};
    const std::optional<RowCandidate> shared = chooseWholeRows(rows, target, demands, &cluster);
    if (shared && shared->layout.cluster == blocks && !shared->looped) return shared;
  }
  const std::optional<RowCandidate> whole = chooseWholeRows(rows, target, demands, nullptr);
  if (whole && !whole->looped) return whole;
  const std::optional<RowCandidate> divided = dividedCandidate(rows, target, demands, nullptr);
  return divided && paysToDivide(*divided, rows) ? divided : whole;
}

}  // namespace heddle::codegen
