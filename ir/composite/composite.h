#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph/builder.h"

// Composite ops: functions over the builder, usable by name from the text form
// (ir/composite/table.h, `heddle ops`). Each is fused like the ops it is made of. Names, defaults,
// shapes and results are PyTorch's unless said otherwise; the PyTorch function stands behind each.
//
// Half types (f16, bf16) compute in f32 from the first op to the last; each result is rounded once,
// at the end. Every size in a formula is the unsharded one. Axes may be negative. All throw
// UserError naming the op, its operand and the source line, and so does what they are made of. A
// tensor without axes is one of one element to an op along an axis, which is 0 or -1.
namespace heddle {

using Axes = std::vector<int64_t>;

// --- reductions (ir/composite/reductions.cpp). No axes means all of them -------------------------

// torch.mean; floats only.
ValueId mean(FusionBuilder& b, ValueId x, const Axes& axes = {}, bool keepdim = false);
// torch.var: sum((x - mean)^2) / max(n - correction, 0), in two passes.
ValueId var(FusionBuilder& b, ValueId x, const Axes& axes = {}, double correction = 1,
            bool keepdim = false);
// torch.std.
ValueId stddev(FusionBuilder& b, ValueId x, const Axes& axes = {}, double correction = 1,
               bool keepdim = false);
struct VarMean {
  ValueId var;
  ValueId mean;
};
// torch.var_mean.
VarMean varMean(FusionBuilder& b, ValueId x, const Axes& axes = {}, double correction = 1,
                bool keepdim = false);
// What Welford's method gives: average, sum of squared differences from it, and the number of
// elements behind each (i64). Computed in two passes.
struct Welford {
  ValueId average;
  ValueId m2;
  ValueId count;
};
Welford welford(FusionBuilder& b, ValueId x, const Axes& axes = {}, bool keepdim = false);
// torch.amax, torch.amin.
ValueId amax(FusionBuilder& b, ValueId x, const Axes& axes = {}, bool keepdim = false);
ValueId amin(FusionBuilder& b, ValueId x, const Axes& axes = {}, bool keepdim = false);
// torch.any, torch.all; NaN is true. Always bool (PyTorch: u8 for u8).
ValueId any(FusionBuilder& b, ValueId x, const Axes& axes = {}, bool keepdim = false);
ValueId all(FusionBuilder& b, ValueId x, const Axes& axes = {}, bool keepdim = false);
// torch.argmax, torch.argmin: i64, the first of equal ones, the first NaN if there is one. Without
// an axis over all elements in row-major order.
ValueId argmax(FusionBuilder& b, ValueId x, std::optional<int64_t> axis = {}, bool keepdim = false);
ValueId argmin(FusionBuilder& b, ValueId x, std::optional<int64_t> axis = {}, bool keepdim = false);
// torch.logsumexp: log(sum(exp(x - m))) + m, where m is the maximum, or 0 where that is infinite.
ValueId logsumexp(FusionBuilder& b, ValueId x, const Axes& axes = {}, bool keepdim = false);

// --- shape and places (ir/composite/shape.cpp, ir/composite/creation_and_indexing.cpp)
// --------------------------

// Tensor.expand_as: `x` with the axes and extents of `y`.
ValueId expandAs(FusionBuilder& b, ValueId x, ValueId y);
// torch.squeeze: without the axes of extent 1, or those listed that have it (none: all, in C++). An
// extent that is known only at run time stays.
ValueId squeeze(FusionBuilder& b, ValueId x, const Axes& axes = {});
ValueId unsqueeze(FusionBuilder& b, ValueId x, int64_t axis);
// torch.transpose.
ValueId transpose(FusionBuilder& b, ValueId x, int64_t axis0, int64_t axis1);
// torch.flatten: axes start to end (both included) become one.
ValueId flatten(FusionBuilder& b, ValueId x, int64_t start = 0, int64_t end = -1);
// x[start:stop:step] along one axis, as Python slices: negative ends count from the end, ends
// outside are clamped; no `stop` means to the end.
ValueId sliceAxis(FusionBuilder& b, ValueId x, int64_t axis, std::optional<Size> start = {},
                  std::optional<Size> stop = {}, int64_t step = 1);
// torch.select: element `index` of an axis, which vanishes.
ValueId select(FusionBuilder& b, ValueId x, int64_t axis, int64_t index);
// torch.cat, with its type promotion; torch.stack.
ValueId cat(FusionBuilder& b, const std::vector<ValueId>& values, int64_t axis = 0);
ValueId stack(FusionBuilder& b, const std::vector<ValueId>& values, int64_t axis = 0);
// torch.chunk: pieces of ceil(n / chunks) elements, the last shorter, perhaps fewer than `chunks`.
// Of an extent known only at run time always `chunks` pieces, the last perhaps empty.
std::vector<ValueId> chunk(FusionBuilder& b, ValueId x, int64_t chunks, int64_t axis = 0);
// Tensor.repeat: `repeats` may be longer than the rank, for new leading axes.
ValueId repeat(FusionBuilder& b, ValueId x, const std::vector<int64_t>& repeats);

ValueId zeros(FusionBuilder& b, std::vector<Size> sizes, DType dtype = DType::F32);
ValueId ones(FusionBuilder& b, std::vector<Size> sizes, DType dtype = DType::F32);
// torch.arange: start, start + step, ... before stop; computed in f64, or in i64 when all three are
// integers. The default dtype is i64 then, else f32.
ValueId arange(FusionBuilder& b, Scalar start, Scalar stop, Scalar step = int64_t{1},
               std::optional<DType> dtype = {});
// torch.eye of one or two sizes.
ValueId eye(FusionBuilder& b, const std::vector<Size>& sizes, DType dtype = DType::F32);
// torch.tril, torch.triu: zero above (below) the given diagonal of the last two axes.
ValueId tril(FusionBuilder& b, ValueId x, int64_t diagonal = 0);
ValueId triu(FusionBuilder& b, ValueId x, int64_t diagonal = 0);
// torch.nn.functional.one_hot: i64, a new last axis. A class outside gives zeros (PyTorch: error).
ValueId oneHot(FusionBuilder& b, ValueId x, int64_t num_classes);

// Indices below are of any integer type. One outside reads NaN of a float type, else 0, and writes
// nothing, where PyTorch raises an error.
// torch.index_select: `index` has one axis, or none for one index.
ValueId indexSelect(FusionBuilder& b, ValueId x, ValueId index, int64_t axis);
// torch.nn.functional.embedding: rows of `weight` [v, d].
ValueId embedding(FusionBuilder& b, ValueId index, ValueId weight);
// torch.gather: `index` has the rank of `x` and may be smaller along the other axes.
ValueId gather(FusionBuilder& b, ValueId x, ValueId index, int64_t axis);
struct Sorted {
  ValueId values;
  ValueId indices;  // i64
};
// torch.sort, always stable; NaN is above every number.
Sorted sort(FusionBuilder& b, ValueId x, int64_t axis = -1, bool descending = false);
// torch.topk, sorted; equal values in the order of their indices.
Sorted topk(FusionBuilder& b, ValueId x, int64_t k, int64_t axis = -1, bool largest = true);

// --- random (ir/composite/random.cpp) ------------------------------------------------------------
// Philox4x32-10 (Salmon et al. 2011) keyed by `seed`; the counter is the row-major index of the
// element in the unsharded tensor and `offset`: equal bits on every backend and every sharding.
// Seed and offset are i64 scalars; a second tensor of the same seed needs another offset.

struct Philox {
  ValueId seed;
  ValueId offset;
};
// i64: the words 0 (low half) and 1 (high half) of the block.
ValueId randomBits(FusionBuilder& b, const std::vector<Size>& sizes, Philox philox);
// In [low, high), both rounded to the type first: min(low + u * (high - low), the number of the
// type before high) in f64, rounded once, with u from as many bits as the type has digits: f32
// (word 0 >> 8) * 2^-24, f64 (both words >> 11) * 2^-53, f16 (word 0 >> 21) * 2^-11, bf16 (word 0
// >> 24) * 2^-8. Where high - low is infinite, u * high + (1 - u) * low stands for the sum.
ValueId uniform(FusionBuilder& b, const std::vector<Size>& sizes, Philox philox, double low = 0,
                double high = 1, DType dtype = DType::F32);
// mean + std * z, z = sqrt(-2 log u1) cos(2 pi u2) (Box and Muller 1958) in f64 with
// u1 = (word 0 + 1) * 2^-32 and u2 = word 1 * 2^-32; rounded once.
ValueId normal(FusionBuilder& b, const std::vector<Size>& sizes, Philox philox, double mean = 0,
               double stddev = 1, DType dtype = DType::F32);
// Bool: uniform f32 < p, where p is rounded to f32.
ValueId bernoulli(FusionBuilder& b, const std::vector<Size>& sizes, Philox philox, double p = 0.5);
// torch.bernoulli: 1 with the probability that the element of `p` says, in the dtype of `p`.
ValueId bernoulli(FusionBuilder& b, ValueId p, Philox philox);
// i64 in [low, high): low + bits mod (high - low), of word 0, or of both words as one number of 64
// bits when the range is above 2^32.
ValueId randint(FusionBuilder& b, const std::vector<Size>& sizes, Philox philox, int64_t low,
                int64_t high);
struct Dropout {
  ValueId y;
  ValueId mask;  // bool: kept
};
// torch.nn.functional.dropout in training: mask = uniform f32 < 1 - p, y = x * mask / (1 - p).
Dropout dropout(FusionBuilder& b, ValueId x, Philox philox, double p = 0.5);

// --- activations (ir/composite/activations.cpp) --------------------------------------------------

// silu(gate) * up.
ValueId swiglu(FusionBuilder& b, ValueId gate, ValueId up);
enum class GeluKind : uint8_t { None, Tanh };
// x Phi(x) with the error function, or 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))): Hendrycks
// and Gimpel 2016. torch.nn.functional.gelu.
ValueId gelu(FusionBuilder& b, ValueId x, GeluKind kind = GeluKind::None);
// gelu(gate) * up and relu(gate) * up (Shazeer 2020).
ValueId geglu(FusionBuilder& b, ValueId gate, ValueId up, GeluKind kind = GeluKind::None);
ValueId reglu(FusionBuilder& b, ValueId gate, ValueId up);
// torch.nn.functional.glu: first half * sigmoid(second half) of an axis of even extent.
ValueId glu(FusionBuilder& b, ValueId x, int64_t axis = -1);
ValueId geluBackward(FusionBuilder& b, ValueId dy, ValueId x, GeluKind kind = GeluKind::None);
ValueId siluBackward(FusionBuilder& b, ValueId dy, ValueId x);
struct SwigluGrads {
  ValueId gate;
  ValueId up;
};
SwigluGrads swigluBackward(FusionBuilder& b, ValueId dy, ValueId gate, ValueId up);
// dy * mask / (1 - p).
ValueId dropoutBackward(FusionBuilder& b, ValueId dy, ValueId mask, double p = 0.5);

// --- softmax and normalizations (ir/composite/norms.cpp, composite_norms_backward.cpp) -----------
// Weight and bias are optional (kNoValue), of the dtype of `x` or f32 beside a half type.

// exp(x - max) / sum over one axis. torch.softmax, torch.log_softmax.
ValueId softmax(FusionBuilder& b, ValueId x, int64_t axis = -1);
ValueId logSoftmax(FusionBuilder& b, ValueId x, int64_t axis = -1);
// Of the results y of the forward.
ValueId softmaxBackward(FusionBuilder& b, ValueId dy, ValueId y, int64_t axis = -1);
ValueId logSoftmaxBackward(FusionBuilder& b, ValueId dy, ValueId y, int64_t axis = -1);

// torch.nn.functional.layer_norm over the last `dims` axes (0: as many as weight has, else 1), with
// the biased variance.
ValueId layerNorm(FusionBuilder& b, ValueId x, ValueId weight = kNoValue, ValueId bias = kNoValue,
                  double eps = 1e-5, int64_t dims = 0);
// torch.nn.functional.rms_norm; no eps means the machine epsilon, that of f32 for the half types.
ValueId rmsNorm(FusionBuilder& b, ValueId x, ValueId weight = kNoValue,
                std::optional<double> eps = {}, int64_t dims = 0);
// torch.nn.functional.group_norm of x[n, c, ...].
ValueId groupNorm(FusionBuilder& b, ValueId x, int64_t groups, ValueId weight = kNoValue,
                  ValueId bias = kNoValue, double eps = 1e-5);
struct BatchNorm {
  ValueId y;
  ValueId running_mean;  // (1 - momentum) * old + momentum * that of the batch
  ValueId running_var;   // the same, of the variance with correction 1
};
// torch.nn.functional.batch_norm(training=True) of x[n, c, ...], normalized with the biased
// variance.
BatchNorm batchNorm(FusionBuilder& b, ValueId x, ValueId running_mean, ValueId running_var,
                    ValueId weight = kNoValue, ValueId bias = kNoValue, double momentum = 0.1,
                    double eps = 1e-5);

struct NormGrads {
  ValueId x;
  ValueId weight;
  ValueId bias;  // kNoValue of rmsNormBackward
};
// They compute the statistics of `x` again. Without a weight its gradient is that of ones.
NormGrads layerNormBackward(FusionBuilder& b, ValueId dy, ValueId x, ValueId weight = kNoValue,
                            double eps = 1e-5, int64_t dims = 0);
NormGrads rmsNormBackward(FusionBuilder& b, ValueId dy, ValueId x, ValueId weight = kNoValue,
                          std::optional<double> eps = {}, int64_t dims = 0);
NormGrads batchNormBackward(FusionBuilder& b, ValueId dy, ValueId x, ValueId weight = kNoValue,
                            double eps = 1e-5);

// --- losses (ir/composite/losses.cpp) ------------------------------------------------------------

enum class LossReduction : uint8_t { Mean, Sum, None };
struct CrossEntropyOptions {
  LossReduction reduction = LossReduction::Mean;  // the mean over targets that are not ignored
  int64_t ignore_index = -100;
  double label_smoothing = 0;
  ValueId weight = kNoValue;  // [c]: of each class, of the dtype of x or f32 beside a half type
};
// torch.nn.functional.cross_entropy of logits x[c], x[n, c] or x[n, c, ...] and class indices
// target[], [n] or [n, ...], or probabilities in the shape and dtype of x. A class outside that is
// not ignored gives NaN (PyTorch: error).
ValueId crossEntropy(FusionBuilder& b, ValueId x, ValueId target,
                     const CrossEntropyOptions& options = {});
// With respect to x; `dloss` has the shape of the loss.
ValueId crossEntropyBackward(FusionBuilder& b, ValueId dloss, ValueId x, ValueId target,
                             const CrossEntropyOptions& options = {});
// torch.nn.functional.mse_loss; broadcasts, as PyTorch does with a warning.
ValueId mseLoss(FusionBuilder& b, ValueId x, ValueId target,
                LossReduction reduction = LossReduction::Mean);
// The gradient of `weight` [num_embeddings, d], added in the order of the indices. The row of
// padding_idx, which if negative counts from the end, gets none.
ValueId embeddingBackward(FusionBuilder& b, ValueId dy, ValueId index, const Size& num_embeddings,
                          std::optional<int64_t> padding_idx = {});

// --- attention (ir/composite/attention.cpp) ------------------------------------------------------

// Rotary position embedding of x[..., t, d] (Su et al. 2021), rotate-half convention of GPT-NeoX
// and Llama: with x1, x2 the halves of the last axis, the result is [x1 cos - x2 sin, x2 cos + x1
// sin]. cos and sin are [t, d/2]. The gradient is rope of dy with -sin.
ValueId rope(FusionBuilder& b, ValueId x, ValueId cos, ValueId sin);
// The same with angle t * base^(-2i/d) for pair i, computed in f32 (f64 for f64).
ValueId rope(FusionBuilder& b, ValueId x, double base = 10000);

struct AttentionOptions {
  bool causal = false;          // query i sees keys 0 .. i
  std::optional<double> scale;  // 1 / sqrt(e)
  bool gqa = false;             // heads of k and v are shared
};
// torch.nn.functional.scaled_dot_product_attention of q[..., l, e], k[..., s, e], v[..., s, d],
// whose leading axes broadcast. With `gqa` (enable_gqa) axis -3 of q is a multiple of that of k and
// v: so many query heads share a head. `mask` (kNoValue: none) is added to the scores, or, a bool,
// says which take part; it broadcasts to [..., l, s]. A query that sees no key gives 0. Half types
// are computed in f32 throughout, as PyTorch's math path does: scores and probabilities are never
// rounded.
ValueId attention(FusionBuilder& b, ValueId q, ValueId k, ValueId v, ValueId mask = kNoValue,
                  const AttentionOptions& options = {});
struct AttentionGrads {
  ValueId q;
  ValueId k;
  ValueId v;
};
// Computes the probabilities again.
AttentionGrads attentionBackward(FusionBuilder& b, ValueId dy, ValueId q, ValueId k, ValueId v,
                                 ValueId mask = kNoValue, const AttentionOptions& options = {});

}  // namespace heddle
