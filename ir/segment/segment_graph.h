#pragma once

#include <memory>
#include <vector>

#include "ir/graph/fusion.h"

namespace heddle {

// The dataflow between expressions, and groups of them that grow while it stays acyclic. A group
// is named by any of its expressions; each begins alone. Host scalars are in no group and carry no
// edges.
class SegmentGraph {
 public:
  explicit SegmentGraph(const Fusion& fusion);
  ~SegmentGraph();
  SegmentGraph(const SegmentGraph&) = delete;
  SegmentGraph& operator=(const SegmentGraph&) = delete;

  ExprId groupOf(ExprId expr);
  const std::vector<ExprId>& members(ExprId group) const;  // ascending

  // Makes one group of two unless a third group would then have to run both before and after it;
  // false when so. `a` must feed `b` directly or come earlier in the order of groups.
  bool merge(ExprId a, ExprId b);

  // Groups in an order in which they can run; of those that could be next, the one with the first
  // expression of the fusion.
  std::vector<ExprId> order();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace heddle
