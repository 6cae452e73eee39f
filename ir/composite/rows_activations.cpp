#include "ir/base/check.h"
#include "ir/composite/rows.h"

namespace heddle::composite_rows {
namespace {

constexpr AttrSpec kGelu[] = {{"approximate", AttrType::Name, false}};
constexpr AttrSpec kGlu[] = {{"axis", AttrType::Int, false}};
constexpr AttrSpec kDropoutBackward[] = {{"p", AttrType::Float, false}};

Operands swigluBackwardRow(B b, V v, A) {
  const SwigluGrads r = swigluBackward(b, v[0], v[1], v[2]);
  return {r.gate, r.up};
}

Operands dropoutBackwardRow(B b, V v, A a) {
  const std::optional<double> p = maybe<double>(a, "p");
  if (v.size() == 2) return {dropoutBackward(b, v[0], v[1], p.value_or(0.5))};
  HEDDLE_USER_CHECK(!p, "{}: both p={} and {} give the probability; omit one",
                    b.where("dropout_backward"), *p, b.typeOf(v[2]));
  return {dropoutBackward(b, v[0], v[1], v[2])};
}

const CompositeDef kActivations[] = {
    {"swiglu",
     "silu(gate) * up",
     2,
     0,
     {},
     [](B b, V v, A) { return Operands{swiglu(b, v[0], v[1])}; }},
    {"gelu", "x times the normal distribution function, or its tanh approximation", 1, 0, kGelu,
     [](B b, V v, A a) { return Operands{gelu(b, v[0], geluKind("gelu", a))}; }},
    {"geglu", "gelu(gate) * up", 2, 0, kGelu,
     [](B b, V v, A a) { return Operands{geglu(b, v[0], v[1], geluKind("geglu", a))}; }},
    {"reglu",
     "relu(gate) * up",
     2,
     0,
     {},
     [](B b, V v, A) { return Operands{reglu(b, v[0], v[1])}; }},
    {"glu", "first half of an axis (-1) times the sigmoid of its second half", 1, 0, kGlu,
     [](B b, V v, A a) { return Operands{glu(b, v[0], get<int64_t>(a, "axis", -1))}; }},
    {"gelu_backward", "gradient of gelu: (dy, x)", 2, 0, kGelu,
     [](B b, V v, A a) {
       return Operands{geluBackward(b, v[0], v[1], geluKind("gelu_backward", a))};
     }},
    {"silu_backward",
     "gradient of silu: (dy, x)",
     2,
     0,
     {},
     [](B b, V v, A) { return Operands{siluBackward(b, v[0], v[1])}; }},
    {"swiglu_backward",
     "gradients of gate and up, two results: (dy, gate, up)",
     3,
     0,
     {},
     swigluBackwardRow},
    {"dropout_backward", "gradient of dropout: (dy, mask[, p])", 2, 1, kDropoutBackward,
     dropoutBackwardRow},
};

}  // namespace

std::span<const CompositeDef> activations() { return kActivations; }

}  // namespace heddle::composite_rows
