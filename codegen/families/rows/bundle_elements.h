#pragma once

#include <cstdint>
#include <optional>

#include "codegen/plan/space.h"

namespace heddle::codegen {

// Facts about the *full* tensors of a space, which change both from row to row and along the rows.
// If rows have one element, all tensors that change from row to row are full.
struct BundleElements {
  int64_t rows = 1;          // extent of the axis along which rows are neighbours
  int64_t narrowest = 8;     // bytes of the smallest element
  int64_t widest = 1;        // bytes of the largest element
  bool has_repeats = false;  // a full tensor has the same element for all rows of a bundle
};

// Returns the facts. Returns nullopt if there are no neighbouring rows, or if they are not
// neighbours in memory.
std::optional<BundleElements> bundleElementsOf(const Space& space);

// Returns whether the elements of `vector` neighbouring rows begin at aligned addresses in all full
// tensors, for each group of `vector` rows.
bool areBundlesAligned(const Space& space, int64_t vector);

}  // namespace heddle::codegen
