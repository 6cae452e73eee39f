#pragma once

#include <set>

#include "ir/segment/segment.h"

namespace heddle {

// A fusion in which some kernels compute a value again instead of reading it.
struct Recomputed {
  Fusion fusion;
  std::set<ExprId> copies;  // the expressions that compute a value again; empty: nothing changed
};

// Finds values that one kernel would store for other kernels only, although these can compute them
// again with less traffic. Gives each of the other kernels copies of the expressions.
//
// A value is computed again if only kernels read it, none of them at computed indices, if the
// fusion does not return it, and if it is not sharded. In addition, one of two conditions must be
// true. First, pointwise ops compute it from indices (iota), constant elements (full) and smaller
// values. It then needs no memory. Random numbers are an example. Second, all of this is true:
// - Pointwise ops without function calls and divisions compute it from values that are in memory. A
//   result of the first kernel that is smaller than the value counts as being in memory, because
//   the kernel can store it instead. If no such values suffice, the kernel may also store, instead
//   of the value, values of the same size whose elements have fewer bytes.
// - The elements of the full-size values in memory have at most as many bytes as the element of the
//   value. The value would be written and read, so at least half of the traffic is saved, or a
//   quarter if another value is stored instead.
//
// `copies` are the expressions of segmented.fusion that an earlier call inserted. The result also
// contains these.
Recomputed recomputeAcrossCuts(const SegmentedFusion& segmented, const std::set<ExprId>& copies);

}  // namespace heddle
