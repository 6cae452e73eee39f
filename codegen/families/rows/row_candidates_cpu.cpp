#include <algorithm>
#include <bit>

#include "codegen/families/rows/row_candidates.h"
#include "codegen/families/rows/row_limits.h"
#include "codegen/families/rows/row_vectors.h"
#include "ir/base/ceil_div.h"

namespace heddle::codegen {
namespace {

using row_limits::kShortWork;

// Cpp: an array holds at most kMostKept elements of a row, so that all arrays stay in the L2 cache.
// All arrays are on the stack and have at most kMostArrayBytes bytes together.
constexpr int64_t kMostKept = 16384;
constexpr int64_t kMostArrayBytes = 256 << 10;
// Cpp: fewer rows than kFewCpuRows do not keep the threads of a pool busy. This does not matter if
// all rows together have at most kShortWork elements.
constexpr int64_t kFewCpuRows = 64;
constexpr int64_t kShortestCpuColumns = 16;

}  // namespace

std::optional<RowCandidate> chooseCpuRows(const Space& space, const RowDemand& demand,
                                          const KernelChoice* choice) {
  const int64_t rows = space.keptCount();
  // If rows are short, it is faster to reduce the columns in a separate launch.
  if (hasColumns(space) && space.reducedCount() < kShortestCpuColumns) return std::nullopt;
  const bool has_few = rows < kFewCpuRows && rows * space.reducedCount() > kShortWork;
  if (has_few && choice == nullptr) return std::nullopt;
  RowCandidate candidate;
  const int64_t chunk = cpuChunk(space);
  candidate.layout.vector = cpuLanes(chunk);
  const int64_t elements = vectorsPerRow(space, chunk) * chunk;
  const auto capacity =
      static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(elements, 64))));
  candidate.looped =
      elements > kMostKept || capacity * demand.kept_bytes > kMostArrayBytes || isLooped(choice);
  if (!candidate.looped) candidate.layout.capacity = capacity;
  return candidate;
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

}  // namespace heddle::codegen
