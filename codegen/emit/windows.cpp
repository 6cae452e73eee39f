// Writes the text of loads of neighbouring elements at computed indices.
#include "codegen/emit/windows.h"

#include <algorithm>
#include <cstdlib>

#include "ir/base/check.h"

namespace heddle::codegen {
namespace {

// A comparison in the form `left` < `right`, or its negation (`opposite`).
struct Order {
  NodeId left;
  NodeId right;
  bool opposite;
};
std::optional<Order> orderOf(const Node& node) {
  if (node.kind != Node::Kind::Apply || node.operands.size() != 2) return std::nullopt;
  const NodeId a = node.operands[0];
  const NodeId b = node.operands[1];
  if (node.text == "({0} < {1})") return Order{a, b, false};
  if (node.text == "({0} > {1})") return Order{b, a, false};
  if (node.text == "({0} >= {1})") return Order{a, b, true};
  if (node.text == "({0} <= {1})") return Order{b, a, true};
  return std::nullopt;
}

bool isChoice(const Node& node) { return node.text == "({0} ? {1} : {2})"; }

// Marks the nodes on which marked nodes depend. Does not follow the operands of nodes in `leaves`.
void markOperands(const Body& body, const IdVector<NodeId, bool>& leaves,
                  IdVector<NodeId, bool>& marked) {
  for (NodeId id : body.nodes.ids().reversed()) {
    if (!marked[id] || leaves[id]) continue;
    const Node& node = body.nodes[id];
    for (NodeId operand : node.operands) marked[operand] = true;
    for (const ComputedIndex& computed : node.computed_indices) {
      if (computed.node.valid()) marked[computed.node] = true;
    }
  }
}

}  // namespace

Windows::Windows(const Body& body, const std::vector<LoadTile>& loads,
                 const IdVector<AccumulatorId, Accumulator>& accumulators, const KernelFrame& frame,
                 int32_t lanes)
    : body_(body),
      loads_(loads),
      frame_(frame),
      lanes_(lanes),
      is_window_(body.nodes.size(), false),
      per_lane_(body.nodes.size(), false) {
  IdVector<NodeId, int> uses(body.nodes.size(), 0);
  auto use = [&](NodeId node) { ++uses[node]; };
  for (const Node& node : body.nodes) {
    for (NodeId operand : node.operands) use(operand);
    for (const ComputedIndex& computed : node.computed_indices) {
      if (computed.node.valid()) use(computed.node);
    }
  }
  auto result = [&](NodeId node) {
    use(node);
    per_lane_[node] = true;
  };
  for (const Store& store : body.stores) result(store.node);
  for (AccumulatorId a : withState(accumulators)) {
    const Accumulator& accumulator = accumulators[a];
    const size_t nodes = accumulator.adds_states ? memberTypes(accumulator).size() : 1;
    for (size_t i = 0; i < nodes; ++i) result(NodeId(accumulator.element.index() + i));
  }
  for (NodeId id : body.nodes.ids()) {
    growth_.push_back(growthOf(body.nodes[id]));
    is_window_[id] = lanes > 1 && isWindow(body.nodes[id], uses);
  }
  markOperands(body, is_window_, per_lane_);
  for (NodeId id : body.nodes.ids()) {
    if (is_window_[id] && per_lane_[id]) nodes_.push_back(id);
  }
}

std::optional<int> Windows::growthOfCoordinate(CoordinateId coordinate) const {
  if (!coordinate.valid()) return 0;
  return frame_.coordinates[coordinate].lanes ? 1 : 0;
}

std::optional<int> Windows::growthOf(const ComputedIndex& computed) const {
  if (computed.node.valid()) return growth_[computed.node];
  const std::optional<int> growth = growthOfCoordinate(computed.coordinate);
  return computed.reversed && growth != 0 ? std::nullopt : growth;
}

std::optional<int> Windows::growthOf(const Node& node) const {
  switch (node.kind) {
    case Node::Kind::Coordinate:
      return growthOfCoordinate(CoordinateId(node.index));
    case Node::Kind::Scalar:
    case Node::Kind::Literal:
      return 0;
    case Node::Kind::Load:
      if (frame_.access(tensorOf(loads_, node.index)).lane == LaneStride::Zero) return 0;
      return std::nullopt;
    case Node::Kind::Apply:
      break;
    case Node::Kind::Result:
    case Node::Kind::LoadAt:
      return std::nullopt;
  }
  if (!node.state.empty()) return std::nullopt;
  std::vector<int> growths;
  bool is_sum = node.dtype == DType::I64;
  for (NodeId operand : node.operands) {
    const std::optional<int> growth = growth_[operand];
    if (!growth) return std::nullopt;
    growths.push_back(*growth);
    is_sum = is_sum && at(operand).dtype == DType::I64;
  }
  if (std::all_of(growths.begin(), growths.end(), [](int g) { return g == 0; })) return 0;
  if (is_sum && node.text == "({0} + {1})") return growths[0] + growths[1];
  if (is_sum && node.text == "({0} - {1})") return growths[0] - growths[1];
  return std::nullopt;
}

// Returns the axis of the tensor along which the elements of neighbouring lanes are neighbours in
// memory, or nullopt if there is none.
std::optional<size_t> Windows::axisOf(const Node& node) const {
  const IndexedAccess& access = frame_.indexed[node.index];
  std::optional<size_t> found;
  for (size_t axis = 0; axis < node.computed_indices.size(); ++axis) {
    const std::optional<int> growth = growthOf(node.computed_indices[axis]);
    if (!growth || node.computed_indices[axis].in_block) return std::nullopt;
    if (*growth == 0) continue;
    const IndexExpr& stride = access.strides[axis];
    const bool contiguous = stride.kind() == IndexExpr::Kind::Constant && stride.value() == 1;
    if (*growth != 1 || found || !contiguous) return std::nullopt;
    found = axis;
  }
  return found;
}

// Returns whether maskText() can compute the bool node.
bool Windows::isMask(NodeId node) const {
  if (at(node).dtype != DType::Bool) return false;
  if (growth_[node] == 0) return true;
  const std::optional<Order> order = orderOf(at(node));
  if (!order || at(node).compute != DType::I64) return false;
  const std::optional<int> left = growth_[order->left];
  const std::optional<int> right = growth_[order->right];
  return left && right && std::abs(*left - *right) == 1;
}

bool Windows::isWindow(const Node& node, const IdVector<NodeId, int>& uses) const {
  if (node.kind == Node::Kind::LoadAt) {
    const bool uniform = std::all_of(node.operands.begin(), node.operands.end(),
                                     [&](NodeId operand) { return growth_[operand] == 0; });
    return uniform && axisOf(node).has_value();
  }
  if (node.kind != Node::Kind::Apply || !isChoice(node) || !isMask(node.operands[0])) return false;
  return std::all_of(node.operands.begin() + 1, node.operands.end(), [&](NodeId operand) {
    return is_window_[operand] && uses[operand] == 1 && at(operand).dtype == node.dtype;
  });
}

// Returns the nodes of which window `node` consists. After a choice come all parts of its first
// window, then all parts of its second window.
std::vector<NodeId> Windows::partsOf(NodeId node) const {
  std::vector<NodeId> parts;
  std::vector<NodeId> open = {node};
  while (!open.empty()) {
    parts.push_back(open.back());
    open.pop_back();
    const Node& part = at(parts.back());
    if (part.kind == Node::Kind::Apply)
      open.insert(open.end(), {part.operands[2], part.operands[1]});
  }
  return parts;
}

// Marks the nodes whose values in lane 0 are needed to load the window that consists of `parts`.
IdVector<NodeId, bool> Windows::firstNodes(const std::vector<NodeId>& parts) const {
  IdVector<NodeId, bool> needed(body_.nodes.size(), false);
  auto need = [&](NodeId node) { needed[node] = true; };
  for (NodeId part : parts) {
    const Node& node = at(part);
    if (node.kind == Node::Kind::LoadAt) {
      for (NodeId operand : node.operands) need(operand);
      for (const ComputedIndex& computed : node.computed_indices) {
        if (computed.node.valid()) need(computed.node);
      }
      continue;
    }
    const NodeId condition = node.operands[0];
    if (growth_[condition] == 0) {
      need(condition);
    } else {
      for (NodeId operand : at(condition).operands) need(operand);
    }
  }
  markOperands(body_, is_window_, needed);
  return needed;
}

// Returns the expression of a word with one bit per lane. The bit says whether the bool node is
// true in this lane.
std::string Windows::maskText(NodeId node) const {
  if (growth_[node] == 0) return fmt::format("(first{} ? ~0u : 0u)", node);
  const Order order = *orderOf(at(node));
  return fmt::format("{}hd::lanesBelow<{}, {}, {}>(first{}, first{})", order.opposite ? "~" : "",
                     lanes_, *growth_[order.left], *growth_[order.right], order.left, order.right);
}

void Windows::writePart(TextWriter& out, NodeId node, const LeafText& leaves,
                        const std::string& to) const {
  const Node& part = at(node);
  if (part.kind == Node::Kind::Apply) {
    const std::string own = fmt::format("lanes{}", node);
    const std::string first = fmt::format("lanes{}", part.operands[1]);
    out.line(fmt::format("const unsigned {} = {} & {};", first, own, maskText(part.operands[0])));
    out.line(fmt::format("const unsigned lanes{} = {} & ~{};", part.operands[2], own, first));
    return;
  }
  const IndexedAccess& access = frame_.indexed[part.index];
  const size_t along = *axisOf(part);
  std::string offset = "0";
  std::string inside;
  std::string first;
  for (size_t axis = 0; axis < part.computed_indices.size(); ++axis) {
    const ComputedIndex& computed = part.computed_indices[axis];
    const std::string index = computedIndexText(computed, access, axis, frame_, leaves, "first");
    if (axis == along) {
      first = index;
      continue;
    }
    if (computed.checked) {
      inside += fmt::format("hd::inside({}, {}) && ", index, access.extents[axis].str());
    }
    offset += fmt::format(" + (Index)({}) * {}", index, access.strides[axis].str());
  }
  out.line(fmt::format(
      "hd::loadWindow<{}>({}, {} + ({}), {}, {}true ? {} : 0, hd::put<{}>({}), lanes{});", lanes_,
      to, access.name, offset, first, inside, access.extents[along].str(), storedType(part.dtype),
      outsideText(body_, part, "first"), node));
}

std::string Windows::nameOf(NodeId node, const char* slot) const {
  if (std::find(nodes_.begin(), nodes_.end(), node) == nodes_.end()) return {};
  return fmt::format("window{}[{}]", node, slot);
}

void Windows::declare(TextWriter& out, int32_t items) const {
  for (NodeId node : nodes_) {
    out.line(fmt::format("hd::Lanes<{}, {}> {};", lanes_, storedType(at(node).dtype),
                         nameOf(node, std::to_string(items).c_str())));
  }
}

void Windows::load(TextWriter& out, LeafText leaves, const char* slot) const {
  leaves.lane = "0";
  for (NodeId node : nodes_) write(out, node, leaves, nameOf(node, slot));
}

// Writes a scope in which all indices are computed for lane 0. The constants of writeNodes() have
// the prefix `first` in this scope. For each part of the window (a node of partsOf()), the constant
// `lanes<part>` has a bit per lane, which says whether the lane takes its value from this part. The
// kernel leaves the scope as soon as all lanes have values.
void Windows::write(TextWriter& out, NodeId node, const LeafText& leaves,
                    const std::string& to) const {
  const std::vector<NodeId> parts = partsOf(node);
  const IdVector<NodeId, bool> needed = firstNodes(parts);
  const bool is_choice = parts.size() > 1;
  out.open(is_choice ? "do {" : "{");
  writeNodes(out, body_, frame_, leaves, "first", &needed);
  out.line(fmt::format("const unsigned lanes{} = (1u << count) - 1u;", node));
  if (is_choice) out.line(fmt::format("unsigned missing = lanes{};", node));
  for (NodeId part : parts) {
    writePart(out, part, leaves, to);
    if (part == parts.back() || at(part).kind != Node::Kind::LoadAt) continue;
    out.line(fmt::format("missing &= ~lanes{};", part));
    out.line("if (missing == 0) break;");
  }
  out.close(is_choice ? "} while (false);" : "}");
}

}  // namespace heddle::codegen
