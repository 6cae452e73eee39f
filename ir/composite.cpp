#include <cmath>

#include "ir/builder.h"
#include "ir/error.h"

namespace heddle {
namespace {

// Gives the result of the composite the name that was asked for, not its first op.
class ResultName {
 public:
  explicit ResultName(FusionBuilder& b) : b_(b), name_(b.takePendingName()) {}
  FusionBuilder& last() { return name_.empty() ? b_ : b_.name(name_); }

 private:
  FusionBuilder& b_;
  std::string name_;
};

}  // namespace

ValueId softmax(FusionBuilder& b, ValueId x, int64_t axis) {
  ResultName result(b);
  const ValueId max = b.reduce("max", x, {axis}, true);
  const ValueId e = b.pointwise("exp", {b.pointwise("sub", {x, max})});
  const ValueId sum = b.reduce("sum", e, {axis}, true);
  return result.last().pointwise("div", {e, sum});
}

ValueId layerNorm(FusionBuilder& b, ValueId x, ValueId weight, ValueId bias, double eps) {
  ResultName result(b);
  // The unsharded extent: the mean is the same whatever the mesh.
  const ValueId n = b.sizeOf(x, -1);
  const ValueId mean = b.pointwise("div", {b.reduce("sum", x, {-1}, true), n});
  const ValueId centered = b.pointwise("sub", {x, mean});
  const ValueId square = b.pointwise("mul", {centered, centered});
  const ValueId variance = b.pointwise("div", {b.reduce("sum", square, {-1}, true), n});
  const ValueId scale = b.pointwise("rsqrt", {b.pointwise("add", {variance, b.constant(eps)})});
  const ValueId normal = b.pointwise("mul", {centered, scale});
  const ValueId scaled = b.pointwise("mul", {normal, weight});
  return result.last().pointwise("add", {scaled, bias});
}

ValueId swiglu(FusionBuilder& b, ValueId gate, ValueId up) {
  ResultName result(b);
  const ValueId activated = b.pointwise("silu", {gate});
  return result.last().pointwise("mul", {activated, up});
}

ValueId gelu(FusionBuilder& b, ValueId x, GeluKind kind) {
  ResultName result(b);
  const ValueId half = b.constant(0.5);
  const ValueId one = b.constant(1.0);
  ValueId inner = kNoValue;
  if (kind == GeluKind::Tanh) {
    // 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), Hendrycks and Gimpel 2016.
    const ValueId cube = b.pointwise("mul", {b.pointwise("mul", {x, x}), x});
    const ValueId bent = b.pointwise("mul", {cube, b.constant(0.044715)});
    const ValueId sum = b.pointwise("add", {x, bent});
    inner = b.pointwise("tanh", {b.pointwise("mul", {sum, b.constant(std::sqrt(2.0 / M_PI))})});
  } else {
    inner = b.pointwise("erf", {b.pointwise("mul", {x, b.constant(std::sqrt(0.5))})});
  }
  const ValueId gate = b.pointwise("mul", {b.pointwise("add", {inner, one}), half});
  return result.last().pointwise("mul", {x, gate});
}

}  // namespace heddle
