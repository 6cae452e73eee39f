#include "ir/parse_op.h"

#include <algorithm>
#include <limits>

#include "ir/edit_distance.h"
#include "ir/error.h"

namespace heddle {
namespace {

using Operands = std::vector<ValueId>;

template <class T>
T attrOr(const Attrs& attrs, std::string_view name, T otherwise) {
  for (const auto& [key, value] : attrs) {
    if (key == name) return std::get<T>(value);
  }
  return otherwise;
}

GeluKind geluKind(const Attrs& attrs) {
  auto kind = attrOr<std::string>(attrs, "approximate", "none");
  if (kind == "none") return GeluKind::None;
  if (kind == "tanh") return GeluKind::Tanh;
  userError("gelu: found approximate={}, expected none or tanh", kind);
}

constexpr AttrSpec kSoftmax[] = {{"axis", AttrType::Int, false}};
constexpr AttrSpec kLayerNorm[] = {{"eps", AttrType::Float, false}};
constexpr AttrSpec kGelu[] = {{"approximate", AttrType::Name, false}};

constexpr size_t kAny = std::numeric_limits<size_t>::max();

struct Composite {
  std::string_view name;
  size_t operands;
  size_t optional;  // so many more may follow; kAny: any number
  std::span<const AttrSpec> attrs;
  Operands (*build)(FusionBuilder&, const Operands&, const Attrs&);
};

const Composite kComposites[] = {
    {"softmax", 1, 0, kSoftmax,
     [](FusionBuilder& b, const Operands& v, const Attrs& a) {
       return Operands{softmax(b, v[0], attrOr<int64_t>(a, "axis", -1))};
     }},
    {"layer_norm", 3, 0, kLayerNorm,
     [](FusionBuilder& b, const Operands& v, const Attrs& a) {
       return Operands{layerNorm(b, v[0], v[1], v[2], attrOr<double>(a, "eps", 1e-5))};
     }},
    {"swiglu",
     2,
     0,
     {},
     [](FusionBuilder& b, const Operands& v, const Attrs&) {
       return Operands{swiglu(b, v[0], v[1])};
     }},
    {"gelu", 1, 0, kGelu,
     [](FusionBuilder& b, const Operands& v, const Attrs& a) {
       return Operands{gelu(b, v[0], geluKind(a))};
     }},
};

const Composite* findComposite(std::string_view name) {
  for (const Composite& composite : kComposites) {
    if (composite.name == name) return &composite;
  }
  return nullptr;
}

std::string_view nearestOp(std::string_view name) {
  std::string_view nearest;
  size_t best = std::numeric_limits<size_t>::max();
  auto consider = [&](std::string_view candidate) {
    size_t distance = editDistance(name, candidate);
    if (distance < best) {
      best = distance;
      nearest = candidate;
    }
  };
  for (const OpDef& op : opTable()) consider(op.name);
  for (const Composite& composite : kComposites) consider(composite.name);
  return nearest;
}

}  // namespace

CallShape callShape(const std::string& op_name) {
  if (const OpDef* op = findOp(op_name)) return {op->attrs, op->kind == OpKind::Constant};
  if (const Composite* composite = findComposite(op_name)) return {composite->attrs, false};
  // A long name is near nothing, and the distance takes the product of the lengths.
  constexpr size_t kLongestName = 40;
  if (op_name.size() > kLongestName) userError("there is no op '{}'", op_name);
  userError("there is no op '{}'; the nearest name is '{}'", op_name, nearestOp(op_name));
}

std::vector<ValueId> buildCall(FusionBuilder& builder, const std::string& op_name,
                               std::vector<ValueId> operands, Attrs attrs) {
  const Composite* composite = findComposite(op_name);
  if (composite == nullptr) return {builder.apply(op_name, std::move(operands), std::move(attrs))};
  const size_t least = composite->operands;
  const bool any = composite->optional == kAny;
  const size_t most = any ? operands.size() : least + composite->optional;
  HEDDLE_USER_CHECK(operands.size() >= least && operands.size() <= most,
                    "{} takes {} operand(s), got {}", op_name,
                    any            ? fmt::format("{} or more", least)
                    : most > least ? fmt::format("{} to {}", least, most)
                                   : fmt::format("{}", least),
                    operands.size());
  return composite->build(builder, operands, attrs);
}

}  // namespace heddle
