// Gated and smooth activations, gradients of some of them, and the gradient of dropout.
#include <cmath>

#include "ir/base/check.h"
#include "ir/composite/composite.h"
#include "ir/composite/terms.h"

namespace heddle {
namespace {

using composite::Result;
using composite::Term;

// Returns gelu(x) / x, which is the normal distribution function Phi(x) or its tanh approximation.
Term geluGate(Term x, GeluKind kind) {
  if (kind == GeluKind::Tanh) {
    const Term bent = x * x * x * 0.044715;
    const Term inner = composite::call("tanh", (x + bent) * std::sqrt(2.0 / M_PI));
    return (inner + 1.0) * 0.5;
  }
  return (composite::call("erf", x * std::sqrt(0.5)) + 1.0) * 0.5;
}

// Returns the derivative of gelu at x.
Term geluSlope(Term x, GeluKind kind) {
  if (kind == GeluKind::None) {
    const Term density = composite::exp(x * x * -0.5) * (1.0 / std::sqrt(2.0 * M_PI));
    return geluGate(x, kind) + x * density;
  }
  const double root = std::sqrt(2.0 / M_PI);
  const Term square = x * x;
  const Term inner = composite::call("tanh", (x + square * x * 0.044715) * root);
  const Term gate = (inner + 1.0) * 0.5;
  const Term bend = (square * (3 * 0.044715) + 1.0) * root;
  return gate + x * (1.0 - inner * inner) * bend * 0.5;
}

// Returns the derivative of silu at x: s (1 + x (1 - s)), where s is sigmoid(x).
Term siluSlope(Term x, Term s) { return s * (x * (1.0 - s) + 1.0); }

struct Pair {
  Term a;
  Term c;
};

// Checks that both operands are float tensors of the same shape and dtype, and returns them.
Pair alike(FusionBuilder& b, const char* op_name, ValueId a, ValueId c) {
  const Pair pair{composite::floatOperand(b, op_name, a), composite::floatOperand(b, op_name, c)};
  composite::sameType(b, op_name, pair.a, pair.c);
  composite::sameShape(b, op_name, pair.a, pair.c);
  return pair;
}

}  // namespace

ValueId swiglu(FusionBuilder& b, ValueId gate, ValueId up) {
  Result result(b);
  const Pair in = alike(b, "swiglu", gate, up);
  const Term activated = composite::call("silu", composite::widen(in.a));
  return result(activated * composite::widen(in.c), in.a.dtype());
}

ValueId gelu(FusionBuilder& b, ValueId x, GeluKind kind) {
  Result result(b);
  const Term value = composite::floatOperand(b, "gelu", x);
  const Term wide = composite::widen(value);
  return result(wide * geluGate(wide, kind), value.dtype());
}

ValueId geglu(FusionBuilder& b, ValueId gate, ValueId up, GeluKind kind) {
  Result result(b);
  const Pair in = alike(b, "geglu", gate, up);
  const Term wide = composite::widen(in.a);
  return result(wide * geluGate(wide, kind) * composite::widen(in.c), in.a.dtype());
}

ValueId reglu(FusionBuilder& b, ValueId gate, ValueId up) {
  Result result(b);
  const Pair in = alike(b, "reglu", gate, up);
  return result(composite::call("relu", in.a) * in.c);
}

ValueId glu(FusionBuilder& b, ValueId x, int64_t axis) {
  Result result(b);
  const Term value = composite::floatOperand(b, "glu", x);
  const int64_t along = composite::axisOf(b, "glu", value, axis);
  const Size extent = value.extent(along);
  composite::guardEven(b, "glu", extent, along, x);
  const Size half = Size::floorDiv(extent, 2);
  const Term first{&b, sliceAxis(b, x, along, Size(0), half)};
  const Term second{&b, sliceAxis(b, x, along, extent - half, extent)};
  const Term gate = composite::call("sigmoid", composite::widen(second));
  return result(composite::widen(first) * gate, value.dtype());
}

ValueId geluBackward(FusionBuilder& b, ValueId dy, ValueId x, GeluKind kind) {
  Result result(b);
  const Pair in = alike(b, "gelu_backward", dy, x);
  const Term slope = geluSlope(composite::widen(in.c), kind);
  return result(composite::widen(in.a) * slope, in.c.dtype());
}

ValueId siluBackward(FusionBuilder& b, ValueId dy, ValueId x) {
  Result result(b);
  const Pair in = alike(b, "silu_backward", dy, x);
  const Term wide = composite::widen(in.c);
  const Term slope = siluSlope(wide, composite::call("sigmoid", wide));
  return result(composite::widen(in.a) * slope, in.c.dtype());
}

SwigluGrads swigluBackward(FusionBuilder& b, ValueId dy, ValueId gate, ValueId up) {
  Result result(b);
  const Pair in = alike(b, "swiglu_backward", gate, up);
  alike(b, "swiglu_backward", dy, gate);
  const Term wide = composite::widen(in.a);
  const Term grad = composite::widen({&b, dy});
  const Term s = composite::call("sigmoid", wide);
  const DType dtype = in.a.dtype();
  const ValueId dgate = result(grad * composite::widen(in.c) * siluSlope(wide, s), dtype);
  return {dgate, composite::cast(grad * (wide * s), dtype).id};
}

ValueId dropoutBackward(FusionBuilder& b, ValueId dy, ValueId mask, double p) {
  Result result(b);
  const Term grad = composite::floatOperand(b, "dropout_backward", dy);
  const Term kept{&b, mask};
  HEDDLE_USER_CHECK(b.tensorOf("dropout_backward", mask).dtype == DType::Bool,
                    "{}: the mask {} must be bool", b.where("dropout_backward"), b.typeOf(mask));
  HEDDLE_USER_CHECK(p >= 0 && p <= 1, "{}: p is {}, expected 0 to 1", b.where("dropout_backward"),
                    p);
  composite::sameShape(b, "dropout_backward", grad, kept);
  const double scale = p == 1 ? 0 : 1 / (1 - p);
  return result(composite::widen(grad) * kept * scale, grad.dtype());
}

}  // namespace heddle
