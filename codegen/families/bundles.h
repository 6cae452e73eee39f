#pragma once

#include <cstdint>
#include <optional>

#include "codegen/families/row_candidates.h"

namespace heddle::codegen {

// The layouts of bundles (RowLayout::bundled), for given sizes. They serve kernels of several
// sweeps over rows whose elements are far apart, because the rows lie along a middle axis: softmax
// of [64, 3000, 333] along axis 1. Neighbouring rows are then neighbours in memory. A block (Cuda)
// or a thread (Cpp) holds all elements of a few neighbouring rows, and reads them once.

// Returns the best layout of bundles. Returns nullopt in these cases, in which several launches are
// better (codegen/families/sweeps.h):
// - The segment needs at most one sweep, or adds columns (hasColumns()). A sweep may compute joint
//   reductions.
// - Neighbouring rows are not neighbours in memory.
// - The rows are so long that the elements of a sector of memory per row do not fit on the chip.
// - There are few rows, and `choice` does not ask for the family "rows".
std::optional<RowCandidate> chooseBundles(const Space& rows, Target target,
                                          const RowDemands& demands, const KernelChoice* choice);

// Cpp: return the number of rows in a bundle, and the number of bundles in a tile of the grid.
int64_t cpuBundleRows(const RowLayout& layout, const Space& rows);
int64_t cpuTileBundles(const RowLayout& layout, const Space& rows);

}  // namespace heddle::codegen
