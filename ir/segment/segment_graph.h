#pragma once

#include <memory>
#include <vector>

#include "ir/graph/fusion.h"

namespace heddle {

// Groups of expressions that can be merged as long as the dataflow between groups stays acyclic.
// Each expression starts as its own group. Host scalars are in no group and have no edges. Borrows
// the fusion only in the constructor.
class SegmentGraph {
 public:
  explicit SegmentGraph(const Fusion& fusion);
  ~SegmentGraph();
  SegmentGraph(const SegmentGraph&) = delete;
  SegmentGraph& operator=(const SegmentGraph&) = delete;

  // Returns the id of a group, which is one of its expressions. merge() may change it.
  ExprId groupOf(ExprId expr);
  const std::vector<ExprId>& members(ExprId group) const;  // ascending

  // Merges two different groups, given by their ids. Returns false, and changes nothing, if a third
  // group would have to run after one of them and before the other.
  bool merge(ExprId a, ExprId b);

  // Returns the groups in an order in which they can run. Of the groups that can be next, the one
  // with the earliest expression of the fusion is next.
  std::vector<ExprId> order();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace heddle
