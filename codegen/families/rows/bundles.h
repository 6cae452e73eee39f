#pragma once

#include <cstdint>
#include <optional>

#include "codegen/families/rows/row_candidates.h"

namespace heddle::codegen {

// A *bundle* is a group of at most RowLayout::vector neighbouring rows. The functions below choose
// the layout of a kernel that computes bundles (RowLayout::bundled), for given sizes.
//
// Bundles serve kernels that pass over each row several times (in several *sweeps*), such as a
// softmax of [64, 3000, 333] along axis 1. The elements of one row are then far apart in memory,
// but neighbouring rows are neighbours in memory. A block or a cluster of blocks (Cuda) or a thread
// (Cpp) holds all elements of a few neighbouring rows, and reads them once.

// Returns the best layout of bundles. Returns nullopt if no bundle fits, or if another kernel is
// faster:
// - The segment needs at most one sweep. On Cuda, two joint reductions (codegen/plan/joint.h) need
//   only one sweep.
// - The kernel also adds elements to columns (hasColumns()).
// - Neighbouring rows are not neighbours in memory.
// - The rows are so long that even the narrowest useful bundle does not fit (Cuda: in the registers
//   or shared memory of a block or cluster; Cpp: in the L2 cache).
// - Cuda: there are many elements, fewer than 32 bytes of neighbouring rows lie together in memory,
//   and the rows are so short that a block of 128 threads would have threads without elements.
// - There are many elements, but few bundles (Cpp) or blocks (Cuda), so that processors would be
//   idle. A choice of the family "rows" overrides this rule.
// - Cuda: there are many elements, and bundles in shared memory would be slower than several
//   launches. A choice of the family "rows" overrides this rule.
std::optional<RowCandidate> chooseBundles(const Space& rows, Target target,
                                          const RowDemands& demands, const KernelChoice* choice);

// Cpp: cpuBundleRows() returns the number of rows of a bundle. cpuTileBundles() returns the number
// of bundles in one tile of the grid (LaunchStage::grid).
int64_t cpuBundleRows(const RowLayout& layout, const Space& rows);
int64_t cpuTileBundles(const RowLayout& layout, const Space& rows);

}  // namespace heddle::codegen
