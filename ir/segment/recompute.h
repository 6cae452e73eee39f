#pragma once

#include <set>

#include "ir/segment/segment.h"

namespace heddle {

// A fusion in which some kernels compute a value again instead of reading it.
struct Recomputed {
  Fusion fusion;
  // The expressions that compute a value again. Empty: nothing changes, and `fusion` is not set.
  std::set<ExprId> copies;
};

// Reduces memory traffic. Finds values that one kernel would store only for other kernels to read,
// and that these kernels can compute again with less traffic. Gives each of the other kernels
// copies of the expressions.
//
// A value is computed again only if all readers are kernels, and none reads it at computed indices,
// as a take does (rule 6 in ir/analysis/kernel_rules.h). The fusion must not return the value, and
// the value must have no sharding. In addition, the value must be of one of two kinds.
//
// A value of the first kind is computed by pointwise ops, broadcasts and expands from indices
// (iota) or constant elements (full), and possibly from values with fewer axes. Random numbers are
// an example. For values of the second kind, all of this is true:
// - Pointwise ops without function calls and divisions, broadcasts and expands compute the value
//   from values in memory, its *sources*. A source may also be a tensor with fewer axes that the
//   storing kernel computes. This kernel then stores this tensor instead of the value. If such
//   sources do not suffice, the kernel may store values with the same axes, but fewer bytes per
//   element. These values are then sources.
// - At least one source has the same axes as the value. All such sources together have at most as
//   many bytes per element as the value.
// If a value of the second kind is computed again, no kernel writes or reads it. Each reader reads
// the sources instead. With one reader this saves at least half of the traffic of the value, or a
// quarter if one narrower value is stored instead.
//
// `copies` are the expressions of segmented.fusion that an earlier call inserted. If the fusion
// changes, Recomputed::copies contains both the old and the new copies.
Recomputed recomputeAcrossCuts(const SegmentedFusion& segmented, const std::set<ExprId>& copies);

}  // namespace heddle
