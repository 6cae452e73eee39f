#include "codegen/families/rows/hold_rows.h"

#include <algorithm>

#include "codegen/families/rows/row_limits.h"
#include "codegen/families/rows/row_vectors.h"
#include "ir/base/ceil_div.h"

namespace heddle::codegen {
namespace {

using row_limits::kLoopThreads;
using row_limits::kMostThreads;
using row_limits::kMostUnrolled;
using row_limits::kSharedBytesOfTwo;
using row_limits::kWarp;

// Rows in shared memory with at most this number of vectors have at most kLoopThreads / 2 threads
// per block. On an H200, group_norm then took 0.965 times as long, but softmax of longer rows 1.11
// times.
constexpr int64_t kFewSharedVectors = 16 * kLoopThreads / 2;

// Returns `loaded` with its row in shared memory. Returns nullopt if a multiprocessor cannot hold
// two such blocks, if a row has fewer threads than a warp, if no tile is loaded before the first
// sweep (0 bytes), or if the code would be too long. `is_chosen`: a choice has decided the number
// of threads.
std::optional<RowCandidate> inSharedMemory(RowCandidate loaded, const Space& rows,
                                           const RowDemand& demand, bool is_chosen) {
  RowLayout& layout = loaded.layout;
  const int64_t vectors = mostVectors(rows, layout.vector, layout.shifted);
  int64_t threads = kLoopThreads / 2 * layout.cluster;
  const bool is_far = ceilDiv(vectors, threads) * layout.vector * demand.ops > kMostUnrolled;
  // In clusters with half as many threads, layer_norm took 1.12 to 1.25 times as long on an H200,
  // but softmax 0.96 to 0.98 times.
  const bool wants_more = layout.cluster > 1 || vectors > kFewSharedVectors;
  if (is_chosen || is_far || wants_more) threads = kLoopThreads * layout.cluster;
  layout.threads = std::min(layout.threads, static_cast<int32_t>(threads));
  layout.rows = 1;
  if (layout.blockThreads() < kWarp) return std::nullopt;
  const int64_t registers = ceilDiv(vectors, layout.threads);
  const int64_t bytes = layout.blockThreads() * registers * layout.vector * demand.loaded_bytes;
  const bool is_unrolled_far = registers * layout.vector * demand.ops > kMostUnrolled;
  if (bytes == 0 || bytes > kSharedBytesOfTwo || is_unrolled_far) return std::nullopt;
  layout.registers = static_cast<int32_t>(registers);
  layout.full = holdsFull(layout, rows);
  layout.shared_bytes = static_cast<int32_t>(bytes);
  loaded.looped = false;
  return loaded;
}

}  // namespace

bool isHeavy(const RowCandidate& candidate, bool keeps_values) {
  constexpr int32_t kMostVectors = 5, kLongVector = 4;
  const RowLayout& layout = candidate.layout;
  if (layout.blockThreads() == kMostThreads) return true;
  if (layout.registers <= kMostVectors) return false;
  if (layout.cluster > 1) return !keeps_values || layout.vector != kLongVector;
  return layout.vector >= kLongVector;
}

RowCandidate withLoadedRow(const RowCandidate& chosen, const std::optional<RowCandidate>& loaded,
                           const Space& rows, const RowDemand& demand, bool is_chosen) {
  if (!loaded) return chosen;
  if (!loaded->looped && !isHeavy(*loaded, false)) return *loaded;
  const std::optional<RowCandidate> shared = inSharedMemory(*loaded, rows, demand, is_chosen);
  if (shared) return *shared;
  return chosen.looped && !loaded->looped ? *loaded : chosen;
}

RowCandidate withHold(const RowCandidate& chosen, const std::optional<RowCandidate>& loaded,
                      const Space& rows, const RowDemand& demand, Hold hold, bool is_chosen) {
  if (!loaded || hold == Hold::Values) return chosen;
  if (hold == Hold::Row) return loaded->looped ? chosen : *loaded;
  return inSharedMemory(*loaded, rows, demand, is_chosen).value_or(chosen);
}

}  // namespace heddle::codegen
