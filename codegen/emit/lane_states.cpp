// Declares the objects of ops (OpDef::state), and finds objects that can compute the results of all
// lanes at once (hd::ForLanes).
#include <algorithm>
#include <optional>

#include "codegen/emit/kernel_text.h"
#include "ir/base/check.h"

namespace heddle::codegen {
namespace {

// Computes by how much the value of each node grows from one lane to the next.
class LaneSteps {
 public:
  LaneSteps(const Body& body, const KernelFrame& frame, const LeafText& leaves) {
    for (const Node& node : body.nodes) steps_.push_back(stepOf(node, frame, leaves));
  }
  // Returns whether the last operand of the node grows by 1 per lane, and all lanes have the same
  // other operands.
  bool grows(const Node& node) const {
    const auto step = [&](NodeId operand) { return steps_[operand]; };
    return !node.operands.empty() && step(node.operands.back()) == 1 &&
           std::all_of(node.operands.begin(), node.operands.end() - 1,
                       [&](NodeId operand) { return step(operand) == 0; });
  }

 private:
  // Returns by how much the node grows per lane, or nullopt if this is not known or differs between
  // lanes.
  std::optional<int> stepOf(const Node& node, const KernelFrame& frame,
                            const LeafText& leaves) const {
    switch (node.kind) {
      case Node::Kind::Scalar:
      case Node::Kind::Literal:
        return 0;
      case Node::Kind::Load:
        if (leaves.is_one_for_lanes && leaves.is_one_for_lanes(node.index)) return 0;
        return std::nullopt;
      case Node::Kind::Coordinate:
        if (node.index < 0) return 0;
        return frame.coordinates[CoordinateId(node.index)].lanes ? 1 : 0;
      case Node::Kind::Apply:
        return stepOfResult(node);
      case Node::Kind::Result:
      case Node::Kind::LoadAt:
        return std::nullopt;
    }
    return std::nullopt;
  }

  std::optional<int> stepOfResult(const Node& node) const {
    int sum = 0;
    for (NodeId operand : node.operands) {
      const std::optional<int> step = steps_[operand];
      if (!step) return std::nullopt;
      sum += *step;
    }
    if (sum == 0) return 0;
    const bool adds = node.text == "({0} + {1})" && node.compute == DType::I64;
    return adds && node.dtype == DType::I64 ? std::optional(sum) : std::nullopt;
  }

  IdVector<NodeId, std::optional<int>> steps_;
};

}  // namespace

void writeLaneStates(TextWriter& out, const Body& body, const std::string& prefix,
                     const KernelFrame& frame, const LeafText& leaves, int lanes) {
  const LaneSteps steps(body, frame, leaves);
  for (NodeId id : body.nodes.ids()) {
    const Node& node = body.nodes[id];
    if (node.state.empty()) continue;
    const bool together = lanes % 4 == 0 && steps.grows(node);
    out.line(together
                 ? fmt::format("hd::ForLanes<{}, {}> {};", node.state, lanes, stateName(prefix, id))
                 : fmt::format("{} {};", node.state, stateName(prefix, id)));
  }
}

}  // namespace heddle::codegen
