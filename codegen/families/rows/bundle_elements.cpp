#include "codegen/families/rows/bundle_elements.h"

#include <algorithm>

#include "codegen/kernel.h"

namespace heddle::codegen {
namespace {

// Returns whether the tensor is full: it changes along a kept axis and along a reduced axis. If
// rows have one element, no tensor changes along them, and the kept axes decide.
bool changesEverywhere(const SpaceTensor& tensor, const Space& space) {
  const auto changes = [](int64_t stride) { return stride != 0; };
  const auto kept = tensor.strides.begin() + static_cast<ptrdiff_t>(space.kept);
  return std::any_of(tensor.strides.begin(), kept, changes) &&
         (std::any_of(kept, tensor.strides.end(), changes) || space.reducedCount() == 1);
}

}  // namespace

std::optional<BundleElements> bundleElementsOf(const Space& space) {
  if (space.kept == 0 || !space.hasReduced() || space.extents[space.kept - 1] < 2) {
    return std::nullopt;
  }
  const size_t lane = space.kept - 1;
  BundleElements elements;
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

bool areBundlesAligned(const Space& space, int64_t vector) {
  const size_t lane = space.kept - 1;
  return std::all_of(space.tensors.begin(), space.tensors.end(), [&](const SpaceTensor& t) {
    if (t.strides[lane] != 1 || !changesEverywhere(t, space)) return true;
    for (size_t axis = 0; axis < t.strides.size(); ++axis) {
      if (axis != lane && t.strides[axis] % vector != 0) return false;
    }
    return t.alignment % std::min<int64_t>(vector * sizeOf(t.dtype), kFullAlignment) == 0;
  });
}

}  // namespace heddle::codegen
