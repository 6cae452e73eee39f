#include "codegen/families/rows/bundles.h"

#include <algorithm>
#include <bit>

#include "codegen/families/rows/bundle_elements.h"
#include "codegen/families/rows/bundles_cuda.h"
#include "codegen/families/rows/row_limits.h"
#include "codegen/families/rows/row_vectors.h"
#include "ir/base/ceil_div.h"

namespace heddle::codegen {
namespace {

// With fewer bundles than this, some threads of the pool are idle.
constexpr int64_t kFewBundles = 64;
// The largest size of all arrays of a bundle together. Up to this size, the arrays stay in the L2
// cache of a core.
constexpr int64_t kMostBundleBytes = 640 << 10;
constexpr int64_t kLineBytes = 64;
constexpr int64_t kMostCpuLanes = 128;

// Returns the number of elements of each array. It is rounded up, so that similar sizes have the
// same kernel text.
int64_t capacityFor(int64_t elements) {
  const auto power =
      static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(elements, 1))));
  const int64_t step = std::max<int64_t>(power / 4, 16);
  return ceilDiv(std::max<int64_t>(elements, 1), step) * step;
}

std::optional<RowCandidate> cpuBundles(const Space& space, const BundleElements& elements,
                                       const RowDemand& demand, const KernelChoice* choice) {
  const int64_t length = space.reducedCount();
  const int64_t outer = space.keptCount() / elements.rows;
  const bool is_large = space.keptCount() * length > row_limits::kShortWork;
  const int64_t least = kLineBytes / elements.narrowest;
  const int64_t most = std::max(powerOf(choice, "vector", kMostCpuLanes, kMostCpuLanes), least);
  for (int64_t lanes = most; lanes >= least; lanes /= 2) {
    const int64_t capacity = capacityFor(length * std::min(lanes, elements.rows));
    if (capacity * (demand.kept_bytes + demand.loaded_bytes) > kMostBundleBytes) continue;
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

std::optional<RowCandidate> chooseBundles(const Space& rows, Target target,
                                          const RowDemands& demands, const KernelChoice* choice) {
  if (!isFamily(choice, "rows")) choice = nullptr;
  if (!demands.expensive.joined_sweeps || hasColumns(rows)) return std::nullopt;
  const std::optional<BundleElements> elements = bundleElementsOf(rows);
  if (!elements) return std::nullopt;
  return target == Target::Cpp ? cpuBundles(rows, *elements, demands.expensive, choice)
                               : chooseCudaBundles(rows, *elements, demands, choice);
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
