#include "ir/composite/rows.h"

namespace heddle::composite_rows {
namespace {

constexpr AttrSpec kSoftmax[] = {{"axis", AttrType::Int, false}};
constexpr AttrSpec kNorm[] = {{"eps", AttrType::Float, false}, {"dims", AttrType::Int, false}};
constexpr AttrSpec kGroupNorm[] = {{"groups", AttrType::Int}, {"eps", AttrType::Float, false}};
constexpr AttrSpec kBatchNorm[] = {{"momentum", AttrType::Float, false},
                                   {"eps", AttrType::Float, false}};
constexpr AttrSpec kEps[] = {{"eps", AttrType::Float, false}};

int64_t axis(A a) { return get<int64_t>(a, "axis", -1); }
int64_t dims(A a) { return get<int64_t>(a, "dims", 0); }
double eps(A a) { return get(a, "eps", 1e-5); }

Operands batchNormRow(B b, V v, A a) {
  const BatchNorm r =
      batchNorm(b, v[0], v[1], v[2], at(v, 3), at(v, 4), get(a, "momentum", 0.1), eps(a));
  return {r.y, r.running_mean, r.running_var};
}

Operands layerNormBackwardRow(B b, V v, A a) {
  const NormGrads r = layerNormBackward(b, v[0], v[1], at(v, 2), eps(a), dims(a));
  return {r.x, r.weight, r.bias};
}

Operands rmsNormBackwardRow(B b, V v, A a) {
  const NormGrads r = rmsNormBackward(b, v[0], v[1], at(v, 2), maybe<double>(a, "eps"), dims(a));
  return {r.x, r.weight};
}

Operands batchNormBackwardRow(B b, V v, A a) {
  const NormGrads r = batchNormBackward(b, v[0], v[1], at(v, 2), eps(a));
  return {r.x, r.weight, r.bias};
}

const CompositeDef kNorms[] = {
    {"softmax", "exp(x - max) / sum over an axis (-1)", 1, 0, kSoftmax,
     [](B b, V v, A a) { return Operands{softmax(b, v[0], axis(a))}; }},
    {"log_softmax", "log of softmax over an axis (-1)", 1, 0, kSoftmax,
     [](B b, V v, A a) { return Operands{logSoftmax(b, v[0], axis(a))}; }},
    {"layer_norm", "(x[, weight[, bias]]): normalized over the last axes", 1, 2, kNorm,
     [](B b, V v, A a) {
       return Operands{layerNorm(b, v[0], at(v, 1), at(v, 2), eps(a), dims(a))};
     }},
    {"rms_norm", "(x[, weight]): divided by the square root of the mean square over the last axes",
     1, 1, kNorm,
     [](B b, V v, A a) {
       return Operands{rmsNorm(b, v[0], at(v, 1), maybe<double>(a, "eps"), dims(a))};
     }},
    {"group_norm",
     "(x[n, c, ...][, weight[, bias]]): normalized over groups of channels. A group of one "
     "element is normalized to 0. If x has only one group, of one element, PyTorch refuses it",
     1, 2, kGroupNorm,
     [](B b, V v, A a) {
       return Operands{groupNorm(b, v[0], need<int64_t>(a, "groups"), at(v, 1), at(v, 2), eps(a))};
     }},
    {"batch_norm",
     "for training, three results: y, new mean, new var: (x[n, c, ...], mean, var[, weight[, "
     "bias]]). An empty batch leaves mean and var unchanged",
     3, 2, kBatchNorm, batchNormRow},
    {"softmax_backward", "gradient of softmax: (dy, y)", 2, 0, kSoftmax,
     [](B b, V v, A a) { return Operands{softmaxBackward(b, v[0], v[1], axis(a))}; }},
    {"log_softmax_backward", "gradient of log_softmax: (dy, y)", 2, 0, kSoftmax,
     [](B b, V v, A a) { return Operands{logSoftmaxBackward(b, v[0], v[1], axis(a))}; }},
    {"layer_norm_backward", "gradients of x, weight and bias, three results: (dy, x[, weight])", 2,
     1, kNorm, layerNormBackwardRow},
    {"rms_norm_backward", "gradients of x and weight, two results: (dy, x[, weight])", 2, 1, kNorm,
     rmsNormBackwardRow},
    {"batch_norm_backward", "gradients of x, weight and bias, three results: (dy, x[, weight])", 2,
     1, kEps, batchNormBackwardRow},
};

}  // namespace

std::span<const CompositeDef> norms() { return kNorms; }

}  // namespace heddle::composite_rows
