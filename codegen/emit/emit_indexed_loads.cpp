// The text of indices and of reads at computed places.
#include <algorithm>
#include <optional>

#include "codegen/emit/kernel_text.h"
#include "ir/base/error.h"

namespace heddle::codegen {
namespace {

std::string placeText(const PlaceAlong& place, const IndexedAccess& access, size_t axis,
                      const KernelFrame& frame, const LeafText& leaves, const std::string& prefix) {
  if (place.node >= 0) return fmt::format("{}{}", prefix, place.node);
  if (place.local) return localIndexText(frame, place.coordinate, leaves.lane);
  std::string text = globalIndexText(frame, place.coordinate, leaves.lane);
  if (place.reversed) return fmt::format("({} - 1 - {})", access.extents[axis].str(), text);
  return place.shift == 0 ? text : fmt::format("({} - ({}LL))", text, place.shift);
}

// Returns the expression of the value of elements that are outside of the tensor.
std::string outsideText(const Body& body, const Node& node, const std::string& prefix) {
  if (node.operands.empty()) return literalText(node.literal, node.dtype);
  const int fill = node.operands[0];
  return convertText(fmt::format("{}{}", prefix, fill), body.nodes[static_cast<size_t>(fill)].dtype,
                     node.dtype);
}

std::string windowText(const Body& body, const Node& node, const std::string& window,
                       const std::string& prefix) {
  const std::string element = fmt::format("hd::get({}[lane])", window);
  const bool checked = std::any_of(node.places.begin(), node.places.end(),
                                   [](const PlaceAlong& place) { return place.checked; });
  if (!checked) return element;
  return fmt::format("({} >> lane & 1u) != 0 ? {} : {}", maskOf(window), element,
                     outsideText(body, node, prefix));
}

// By how much an i64 node grows from lane to lane, and which nodes it needs. The growth is nullopt
// if it is not known.
class LaneGrowth {
 public:
  LaneGrowth(const Body& body, const KernelFrame& frame) : body_(body), frame_(frame) {}

  std::optional<int> ofCoordinate(int coordinate) const {
    if (coordinate < 0) return 0;
    return frame_.coordinates[static_cast<size_t>(coordinate)].lanes ? 1 : 0;
  }

  std::optional<int> ofNode(int index) const {
    const Node& node = body_.nodes[static_cast<size_t>(index)];
    switch (node.kind) {
      case Node::Kind::Coordinate:
        return ofCoordinate(node.index);
      case Node::Kind::Scalar:
      case Node::Kind::Literal:
        return 0;
      case Node::Kind::Apply:
        return ofApply(node);
      default:
        return std::nullopt;
    }
  }

  std::optional<int> ofPlace(const PlaceAlong& place) const {
    if (place.node >= 0) return ofNode(place.node);
    const std::optional<int> growth = ofCoordinate(place.coordinate);
    return place.reversed && growth != 0 ? std::nullopt : growth;
  }

 private:
  std::optional<int> ofApply(const Node& node) const {
    const bool adds = node.text == "({0} + {1})";
    if ((!adds && node.text != "({0} - {1})") || node.dtype != DType::I64) return std::nullopt;
    int growth[2];
    for (size_t i = 0; i < 2; ++i) {
      const int operand = node.operands[i];
      if (body_.nodes[static_cast<size_t>(operand)].dtype != DType::I64) return std::nullopt;
      const std::optional<int> own = ofNode(operand);
      if (!own) return std::nullopt;
      growth[i] = *own;
    }
    return adds ? growth[0] + growth[1] : growth[0] - growth[1];
  }

  const Body& body_;
  const KernelFrame& frame_;
};

// Returns the axis of the tensor along which the window of the node lies, or nullopt.
std::optional<size_t> windowAxis(const Node& node, const LaneGrowth& growth,
                                 const KernelFrame& frame) {
  if (node.kind != Node::Kind::LoadAt) return std::nullopt;
  const IndexedAccess& access = frame.indexed[static_cast<size_t>(node.index)];
  std::optional<size_t> found;
  for (size_t axis = 0; axis < node.places.size(); ++axis) {
    const std::optional<int> own = growth.ofPlace(node.places[axis]);
    if (!own || node.places[axis].in_block) return std::nullopt;
    if (*own == 0) continue;
    const IndexExpr& stride = access.strides[axis];
    const bool contiguous = stride.kind() == IndexExpr::Kind::Constant && stride.value() == 1;
    if (*own != 1 || found || !contiguous) return std::nullopt;
    found = axis;
  }
  return found;
}

// Marks the nodes on which `node` depends.
void markOperands(const Body& body, int node, std::vector<bool>& needed) {
  needed[static_cast<size_t>(node)] = true;
  for (int operand : body.nodes[static_cast<size_t>(node)].operands) {
    markOperands(body, operand, needed);
  }
}

}  // namespace

std::string maskOf(const std::string& window) { return "inside_" + window; }

std::vector<int> windowsOf(const Body& body, const KernelFrame& frame) {
  const LaneGrowth growth(body, frame);
  std::vector<int> windows;
  for (size_t i = 0; i < body.nodes.size(); ++i) {
    if (windowAxis(body.nodes[i], growth, frame)) windows.push_back(static_cast<int>(i));
  }
  return windows;
}

// The text computes all indices for lane 0. The names of its constants are those of writeNodes()
// with another prefix, in a scope of their own.
void writeWindow(TextWriter& out, const Body& body, int node, const KernelFrame& frame,
                 int32_t lanes, const std::string& to) {
  const Node& load = body.nodes[static_cast<size_t>(node)];
  const IndexedAccess& access = frame.indexed[static_cast<size_t>(load.index)];
  const size_t along = *windowAxis(load, LaneGrowth(body, frame), frame);
  LeafText leaves;
  leaves.lane = "0";
  out.open("{");
  std::vector<bool> needed(body.nodes.size(), false);
  for (const PlaceAlong& place : load.places) {
    if (place.node >= 0) markOperands(body, place.node, needed);
  }
  writeNodes(out, body, frame, leaves, "first", &needed);
  std::string offset = "0";
  std::string inside;
  std::string first;
  for (size_t axis = 0; axis < load.places.size(); ++axis) {
    const PlaceAlong& place = load.places[axis];
    const std::string at = placeText(place, access, axis, frame, leaves, "first");
    if (axis == along) {
      first = at;
      continue;
    }
    const std::string extent = access.extents[axis].str();
    if (place.checked) inside += fmt::format("hd::inside({}, {}) && ", at, extent);
    offset += fmt::format(" + (Index)({}) * {}", at, access.strides[axis].str());
  }
  out.line(fmt::format(
      "{} = hd::loadWindow<{}>({}, {} + ({}), {}, {}true ? (long long){} : 0, "
      "count);",
      maskOf(to), lanes, to, access.name, offset, first, inside, access.extents[along].str()));
  out.close();
}

std::string localIndexText(const KernelFrame& frame, int coordinate, const std::string& lane) {
  if (coordinate < 0) return "(Index)0";
  const AxisCoordinate& indexed = frame.coordinates[static_cast<size_t>(coordinate)];
  if (indexed.axis.empty()) return "(Index)0";
  return indexed.lanes ? fmt::format("({} + {})", indexed.axis, lane) : indexed.axis;
}

std::string globalIndexText(const KernelFrame& frame, int coordinate, const std::string& lane) {
  if (coordinate < 0) return "0LL";
  const AxisCoordinate& indexed = frame.coordinates[static_cast<size_t>(coordinate)];
  HEDDLE_CHECK(!indexed.offset.empty(), "coordinate {} has no offset", coordinate);
  if (indexed.axis.empty()) return indexed.offset;
  return fmt::format("({} + {})", indexed.offset, localIndexText(frame, coordinate, lane));
}

bool readsMemory(const Body& body) {
  return std::any_of(body.nodes.begin(), body.nodes.end(),
                     [](const Node& node) { return node.kind == Node::Kind::LoadAt; });
}

std::string loadAtText(TextWriter& out, const Body& body, size_t i, const KernelFrame& frame,
                       const LeafText& leaves, const std::string& prefix) {
  const Node& node = body.nodes[i];
  const IndexedAccess& access = frame.indexed[static_cast<size_t>(node.index)];
  const std::string window = leaves.window ? leaves.window(static_cast<int>(i)) : std::string();
  if (!window.empty()) return windowText(body, node, window, prefix);
  const std::string own = fmt::format("{}{}", prefix, i);
  std::string offset;
  std::string inside;
  std::string inside_whole;
  for (size_t axis = 0; axis < node.places.size(); ++axis) {
    const PlaceAlong& place = node.places[axis];
    std::string at = placeText(place, access, axis, frame, leaves, prefix);
    if (place.in_block) {
      inside_whole = fmt::format("hd::inside({}, {})", at, access.wholes[axis]);
      // Any number may stand there: the difference wraps.
      at = fmt::format("(long long)((unsigned long long){} - (unsigned long long){})", at,
                       access.begins[axis]);
    }
    if (place.checked) {
      const std::string name = fmt::format("{}_at{}", own, axis);
      out.line(fmt::format("const long long {} = {};", name, at));
      inside += fmt::format("{}hd::inside({}, {})", inside.empty() ? "" : " && ", name,
                            access.extents[axis].str());
      at = name;
    }
    const std::string stride = access.strides[axis].str();
    if (stride == "0") continue;
    offset += fmt::format("{}(Index){}", offset.empty() ? "" : " + ", at);
    if (stride != "1") offset += fmt::format(" * {}", stride);
  }
  const std::string element = fmt::format("hd::get(hd::fetch({} + ({})))", access.name,
                                          offset.empty() ? std::string("0") : offset);
  if (inside.empty()) return element;
  const std::string value_type(valueType(node.dtype));
  std::string otherwise = outsideText(body, node, prefix);
  if (!inside_whole.empty()) {
    // The results of the ranks are summed. x + -0.0 has the bits of x for every x, but -0.0 + 0.0
    // is 0.0.
    const Scalar nothing = isFloat(node.dtype) ? Scalar(-0.0) : Scalar(int64_t{0});
    otherwise = fmt::format("({} ? ({}){} : {})", inside_whole, value_type,
                            literalText(nothing, node.dtype), otherwise);
  }
  return fmt::format("{} ? {} : {}", inside, element, otherwise);
}

}  // namespace heddle::codegen
