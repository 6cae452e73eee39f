#include "codegen/emit/accumulator_text.h"

#include "codegen/plan/joint.h"
#include "ir/base/check.h"

namespace heddle::codegen {
namespace {

bool sumsProducts(const Body& body, const Accumulator& a) {
  if (a.joint != JointKind::None || a.adds_states || a.type != DType::F32) return false;
  const Node& element = body.nodes[a.element];
  return a.text == "({0} + {1})" && element.kind == Node::Kind::Apply &&
         element.text == "({0} * {1})" && element.compute == DType::F32 &&
         element.dtype == DType::F32 && element.conditions == 0;
}

}  // namespace

std::string stateType(const Accumulator& a) {
  return std::string(a.joint == JointKind::None ? valueType(a.type) : jointText(a.joint).type);
}

int stateBytes(const Accumulator& a) {
  return a.joint == JointKind::None ? 8 : static_cast<int>(4 * jointText(a.joint).members.size());
}

std::string identityText(const Accumulator& a) {
  return a.joint == JointKind::None ? literalText(a.identity, a.type) : stateType(a) + "()";
}

std::string combineText(const Accumulator& a, const std::string& into, const std::string& element) {
  const std::string_view text = a.joint == JointKind::None ? a.text : "hd::joined({0}, {1})";
  return applyText(text, into, element);
}

void writePartners(TextWriter& out, const Accumulator& a, const std::string& into, int first_mask,
                   int last_mask) {
  if (a.joint != JointKind::None) {
    return out.line(
        fmt::format("{0} = hd::joinedOver<{1}, {2}>({0});", into, first_mask, last_mask));
  }
  out.line("#pragma unroll");
  out.line(fmt::format("for (int mask = {}; mask >= {}; mask /= 2) {} = {};", first_mask, last_mask,
                       into, combineText(a, into, fmt::format("hd::fromPartner({}, mask)", into))));
}

std::string elementText(const Body& body, const Accumulator& a, const std::string& prefix) {
  const auto valueOf = [&](NodeId node) {
    return convertText(fmt::format("{}{}", prefix, node), body.nodes[node].dtype, a.type);
  };
  if (!a.adds_states) return valueOf(a.element);
  std::vector<std::string> members;
  for (size_t m = 0; m < memberTypes(a).size(); ++m) {
    members.push_back(valueOf(NodeId(a.element.index() + m)));
  }
  return fmt::format("{}{{{}}}", stateType(a), fmt::join(members, ", "));
}

std::string accumulateText(const Body& body, const Accumulator& a, const std::string& prefix,
                           const std::string& into) {
  if (!sumsProducts(body, a)) return combineText(a, into, elementText(body, a, prefix));
  const auto factor = [&](NodeId node) {
    return convertText(fmt::format("{}{}", prefix, node), body.nodes[node].dtype, DType::F32);
  };
  const std::vector<NodeId>& factors = body.nodes[a.element].operands;
  return fmt::format("hd::multiplyAdd({}, {}, {})", factor(factors[0]), factor(factors[1]), into);
}

std::string memberText(const Accumulator& a, const std::string& state, size_t m) {
  if (a.joint == JointKind::None) return state;
  return fmt::format("{}.{}", state, jointText(a.joint).members[m]);
}

std::string resultText(const Accumulator& a, const std::string& state, const std::string& center) {
  if (a.joint == JointKind::None) return state;
  const JointText& text = jointText(a.joint);
  return applyText(a.hasState() ? text.first : text.second, state, center);
}

}  // namespace heddle::codegen
