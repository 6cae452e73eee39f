#pragma once

#include <memory>
#include <vector>

#include "ir/graph/fusion.h"

namespace heddle {

// A graph of groups of expressions. Initially each expression is a group of its own. Two groups can
// be merged if the dataflow between groups stays acyclic. Expressions that the host evaluates
// (isHostScalar() in ir/analysis/kernel_rules.h) are in no group and have no edges. The graph uses
// the fusion only in the constructor.
class SegmentGraph {
 public:
  explicit SegmentGraph(const Fusion& fusion);
  ~SegmentGraph();
  SegmentGraph(const SegmentGraph&) = delete;
  SegmentGraph& operator=(const SegmentGraph&) = delete;

  // Returns the id of the group that contains the expression. The id of a group is the id of one of
  // its expressions. merge() may change the id of a group.
  ExprId groupOf(ExprId expr);
  const std::vector<ExprId>& members(ExprId group) const;  // ascending

  // Merges two different groups, given by their ids. Returns false, and changes nothing, if a third
  // group would have to run after one of them and before the other.
  bool merge(ExprId a, ExprId b);

  // Returns the groups in an order in which they can run. If several groups can be next, the group
  // whose first expression is earliest in the fusion is next.
  std::vector<ExprId> order();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace heddle
