// Gradients of softmax and the normalizations.
#include "ir/base/error.h"
#include "ir/composite/composite.h"
#include "ir/composite/norms.h"

namespace heddle {
namespace {

using composite::Result;
using composite::Term;

struct GradPair {
  Term dy;  // widened (ir/composite/terms.h)
  Term x;   // the second operand
};

GradPair gradPair(FusionBuilder& b, const char* op_name, ValueId dy, ValueId x) {
  const Term grad = composite::floatOperand(b, op_name, dy);
  const Term value = composite::floatOperand(b, op_name, x);
  composite::sameType(b, op_name, grad, value);
  composite::sameShape(b, op_name, grad, value);
  return {composite::widen(grad), value};
}

// Sums the gradient over the axes `over` and casts it to the dtype of the parameter, or to the
// dtype of `x` if there is no parameter.
Term parameterGrad(FusionBuilder& b, Term grad, const Axes& over, ValueId parameter, Term x) {
  const Term total = over.empty() ? grad : composite::sum(grad, over, false);
  const DType dtype = parameter == kNoValue ? x.dtype() : b.fusion().tensor(parameter).dtype;
  return composite::cast(total, dtype);
}

// Returns the gradient with respect to x of normal = (x - mean) * scale. g is the gradient with
// respect to normal. The result is scale * (g - mean(g) - normal * mean(g * normal)).
Term throughNormal(const composite::Normal& normal, Term g, const Axes& over) {
  const Term shift = composite::sum(g, over) / normal.n;
  const Term slope = composite::sum(g * normal.normal, over) / normal.n;
  return (g - shift - normal.normal * slope) * normal.scale;
}

Axes leadingAxes(Term x, const Axes& last) { return rowMajor(x.rank() - last.size()); }

}  // namespace

ValueId softmaxBackward(FusionBuilder& b, ValueId dy, ValueId y, int64_t axis) {
  Result result(b);
  const GradPair in = gradPair(b, "softmax_backward", dy, y);
  const Axes over = composite::lineOf(b, "softmax_backward", in.x, axis);
  const Term p = composite::widen(in.x);
  const Term weighted = in.dy * p;
  const Term total = composite::sum(weighted, over);
  return result(weighted - p * total, in.x.dtype());
}

ValueId logSoftmaxBackward(FusionBuilder& b, ValueId dy, ValueId y, int64_t axis) {
  Result result(b);
  const GradPair in = gradPair(b, "log_softmax_backward", dy, y);
  const Axes over = composite::lineOf(b, "log_softmax_backward", in.x, axis);
  const Term p = composite::exp(composite::widen(in.x));
  return result(in.dy - p * composite::sum(in.dy, over), in.x.dtype());
}

NormGrads layerNormBackward(FusionBuilder& b, ValueId dy, ValueId x, ValueId weight, double eps,
                            int64_t dims) {
  Result result(b);
  const GradPair in = gradPair(b, "layer_norm_backward", dy, x);
  const Axes over = composite::lastAxes(b, "layer_norm_backward", in.x, weight, dims);
  const composite::Normal normal = composite::normalOf(composite::widen(in.x), over, eps);
  Term g = in.dy;
  if (weight != kNoValue) {
    g = g * composite::lastParameter(b, "layer_norm_backward", in.x, weight, over);
  }
  const ValueId dx = result(throughNormal(normal, g, over), in.x.dtype());
  const Axes leading = leadingAxes(in.x, over);
  return {dx, parameterGrad(b, in.dy * normal.normal, leading, weight, in.x).id,
          parameterGrad(b, in.dy, leading, weight, in.x).id};
}

NormGrads rmsNormBackward(FusionBuilder& b, ValueId dy, ValueId x, ValueId weight,
                          std::optional<double> eps, int64_t dims) {
  Result result(b);
  const GradPair in = gradPair(b, "rms_norm_backward", dy, x);
  const Axes over = composite::lastAxes(b, "rms_norm_backward", in.x, weight, dims);
  const Term wide = composite::widen(in.x);
  const Term square = composite::mean(wide * wide, over);
  const Term scale = composite::rsqrt(square + eps.value_or(composite::epsilonOf(in.x.dtype())));
  const Term normal = wide * scale;
  Term g = in.dy;
  if (weight != kNoValue) {
    g = g * composite::lastParameter(b, "rms_norm_backward", in.x, weight, over);
  }
  const Term slope = composite::mean(g * normal, over);
  const ValueId dx = result((g - normal * slope) * scale, in.x.dtype());
  const Axes leading = leadingAxes(in.x, over);
  return {dx, parameterGrad(b, in.dy * normal, leading, weight, in.x).id, kNoValue};
}

NormGrads batchNormBackward(FusionBuilder& b, ValueId dy, ValueId x, ValueId weight, double eps) {
  Result result(b);
  const GradPair in = gradPair(b, "batch_norm_backward", dy, x);
  composite::channelOperand(b, "batch_norm_backward", x);
  const Axes over = composite::channelRest(in.x.rank());
  const composite::Normal normal = composite::normalOf(composite::widen(in.x), over, eps);
  Term g = in.dy;
  if (weight != kNoValue) {
    g = g * composite::channelParameter(b, "batch_norm_backward", in.x, weight);
  }
  const ValueId dx = result(throughNormal(normal, g, over), in.x.dtype());
  return {dx, parameterGrad(b, in.dy * normal.normal, over, weight, in.x).id,
          parameterGrad(b, in.dy, over, weight, in.x).id};
}

}  // namespace heddle
