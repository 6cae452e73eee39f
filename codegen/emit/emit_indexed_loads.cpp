// Functions of codegen/emit/kernel_text.h: the text of indices, and of loads at computed indices.
#include <algorithm>
#include <cstdlib>

#include "codegen/emit/kernel_text.h"
#include "ir/base/check.h"

namespace heddle::codegen {

std::string computedIndexText(const ComputedIndex& computed, const IndexedAccess& access,
                              size_t axis, const KernelFrame& frame, const LeafText& leaves,
                              const std::string& prefix) {
  if (computed.node.valid()) return fmt::format("{}{}", prefix, computed.node);
  if (computed.local) return localIndexText(frame, computed.coordinate, leaves.lane);
  std::string text = globalIndexText(frame, computed.coordinate, leaves.lane);
  if (computed.reversed) return fmt::format("({} - 1 - {})", access.extents[axis].str(), text);
  if (computed.width >= 0) {
    return fmt::format("({} - {})", text, frame.widths[computed.width]);
  }
  if (computed.shift == 0) return text;
  // A position fits in 30 bits if Index has 32 bits, so the difference fits in 32 bits.
  const bool is_small = std::abs(computed.shift) < int64_t{1} << 30;
  return fmt::format("({} - ({}{}))", text, computed.shift, is_small ? "" : "LL");
}

std::string outsideText(const Body& body, const Node& node, const std::string& prefix) {
  if (node.operands.empty()) return literalText(node.literal, node.dtype);
  const NodeId fill = node.operands[0];
  return convertText(fmt::format("{}{}", prefix, fill), body.nodes[fill].dtype, node.dtype);
}

std::string localIndexText(const KernelFrame& frame, CoordinateId coordinate,
                           const std::string& lane) {
  if (!coordinate.valid()) return "(Index)0";
  const AxisCoordinate& indexed = frame.coordinates[coordinate];
  if (indexed.axis.empty()) return "(Index)0";
  return indexed.lanes ? fmt::format("({} + {})", indexed.axis, lane) : indexed.axis;
}

std::string globalIndexText(const KernelFrame& frame, CoordinateId coordinate,
                            const std::string& lane) {
  if (!coordinate.valid()) return "(Index)0";
  const AxisCoordinate& indexed = frame.coordinates[coordinate];
  HEDDLE_CHECK(!indexed.offset.empty(), "coordinate {} has no offset", coordinate);
  if (indexed.axis.empty()) return indexed.offset;
  return fmt::format("({} + {})", indexed.offset, localIndexText(frame, coordinate, lane));
}

bool readsMemory(const Body& body) {
  return std::any_of(body.nodes.begin(), body.nodes.end(),
                     [](const Node& node) { return node.kind == Node::Kind::LoadAt; });
}

std::string loadAtText(TextWriter& out, const Body& body, NodeId id, const KernelFrame& frame,
                       const LeafText& leaves, const std::string& prefix) {
  const Node& node = body.nodes[id];
  const IndexedAccess& access = frame.indexed[node.index];
  const std::string own = fmt::format("{}{}", prefix, id);
  std::string offset;
  std::string inside;
  std::string inside_whole;
  for (size_t axis = 0; axis < node.computed_indices.size(); ++axis) {
    const ComputedIndex& computed = node.computed_indices[axis];
    std::string at = computedIndexText(computed, access, axis, frame, leaves, prefix);
    if (computed.in_block) {
      inside_whole = fmt::format("hd::inside({}, {})", at, access.wholes[axis]);
      // The subtraction is unsigned, because it may overflow: an index from a tensor can be any
      // number.
      at = fmt::format("(long long)((unsigned long long){} - (unsigned long long){})", at,
                       access.begins[axis]);
    }
    if (computed.checked) {
      const std::string name = fmt::format("{}_at{}", own, axis);
      out.line(fmt::format("const auto {} = {};", name, at));
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
    // If the element belongs to the shard of another rank, the load gives `nothing`. A later sum
    // over the ranks then gives the element. For floats, `nothing` is -0.0, because x + -0.0 has
    // the bits of x for every number x. With 0.0, the sum for x = -0.0 would be 0.0.
    const Scalar nothing = isFloat(node.dtype) ? Scalar(-0.0) : Scalar(int64_t{0});
    otherwise = fmt::format("({} ? ({}){} : {})", inside_whole, value_type,
                            literalText(nothing, node.dtype), otherwise);
  }
  return fmt::format("{} ? {} : {}", inside, element, otherwise);
}

}  // namespace heddle::codegen
