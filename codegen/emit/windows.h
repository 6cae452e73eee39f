#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codegen/emit/kernel_text.h"

namespace heddle::codegen {

// The windows of a body. A *window* is a node whose values for all lanes of a vector are loaded at
// once, before the code that runs per lane. Two kinds of nodes are windows:
// - A LoadAt (codegen/plan/body.h) that reads neighbours in memory: along one contiguous axis, its
//   index grows by 1 from lane to lane, and along every other axis, all lanes have the same index.
//   All lanes must have the same value outside of the tensor, and no axis may be sharded
//   (ComputedIndex::in_block). The ops cat, pad, slice and roll create such nodes.
// - A choice between two windows. No other node may use these two windows, and the kernel must be
//   able to compute the condition once per vector. It can if all lanes have the same condition. It
//   also can if the condition compares two integers that each grow by a constant from lane to lane,
//   and the constants differ by 1. Most vectors then load only one of the two windows.
//
// If vectors have one lane, there are no windows. `loads` are the loads of the tiles that the body
// reads. All arguments must live longer than the object.
class Windows {
 public:
  Windows(const Body& body, const std::vector<LoadTile>& loads,
          const IdVector<AccumulatorId, Accumulator>& accumulators, const KernelFrame& frame,
          int32_t lanes);

  // Returns, for each node of the body, whether the code that runs per lane needs the node.
  const IdVector<NodeId, bool>& perLane() const { return per_lane_; }

  // Writes the declarations of arrays of `items` vectors, one array per window.
  void declare(TextWriter& out, int32_t items) const;
  // Writes the loads of the vectors of item `slot`. The text uses the variable `count`, the number
  // of lanes that exist. `leaves` must contain the expressions of the item.
  void load(TextWriter& out, LeafText leaves, const char* slot) const;
  // Returns the name of the vector that contains window `node` of item `slot`, or "" if the node is
  // no window or is a part of another window.
  std::string nameOf(NodeId node, const char* slot) const;

 private:
  void write(TextWriter& out, NodeId node, const LeafText& leaves, const std::string& to) const;
  const Node& at(NodeId node) const { return body_.nodes[node]; }
  std::optional<int> growthOf(const Node& node) const;
  std::optional<int> growthOf(const ComputedIndex& computed) const;
  std::optional<int> growthOfCoordinate(CoordinateId coordinate) const;
  std::optional<size_t> axisOf(const Node& node) const;
  bool isMask(NodeId node) const;
  bool isWindow(const Node& node, const IdVector<NodeId, int>& uses) const;
  IdVector<NodeId, bool> firstNodes(const std::vector<NodeId>& parts) const;
  std::vector<NodeId> partsOf(NodeId node) const;
  std::string maskText(NodeId node) const;
  void writePart(TextWriter& out, NodeId node, const LeafText& leaves, const std::string& to) const;

  const Body& body_;
  const std::vector<LoadTile>& loads_;
  const KernelFrame& frame_;
  const int32_t lanes_;
  // Per node: by how much its value grows from lane to lane. nullopt: not known. A node with growth
  // 0 has the same value in all lanes. A node with any other known growth is an i64.
  IdVector<NodeId, std::optional<int>> growth_;
  IdVector<NodeId, bool> is_window_;
  IdVector<NodeId, bool> per_lane_;
  std::vector<NodeId>
      nodes_;  // the windows that are not parts of another window, in ascending order
};

}  // namespace heddle::codegen
