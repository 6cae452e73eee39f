#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph/builder.h"

// Composite ops: functions that append ops to a FusionBuilder. The text form calls them by name
// (ir/composite/table.h, `heddle ops`). heddle fuses the ops of a composite like all other ops.
// Names, defaults, shapes and results are PyTorch's, unless a comment states a difference. The
// comment of each function names its PyTorch function.
//
// Rounding: half types (f16, bf16) compute in f32 from the first op to the last; each result is
//           rounded once, at the end.
// Sizes:    every size in a formula is unsharded.
// Axes:     a negative axis counts from the end. A tensor without axes counts as a tensor with one
//           axis and one element. The axis is 0 or -1.
// Errors:   UserError with the composite, its operand and the source line, even if one of its ops
//           finds the error.
namespace heddle {

using Axes = std::vector<int64_t>;

// --- reductions (ir/composite/reductions.cpp). An empty list of axes means all axes --------------

// torch.mean, for floats only.
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
// Returns the quantities of Welford's method: the average, the sum of squared differences from the
// average (m2), and the number of elements (i64). They are computed in two passes.
struct Welford {
  ValueId average;
  ValueId m2;
  ValueId count;
};
Welford welford(FusionBuilder& b, ValueId x, const Axes& axes = {}, bool keepdim = false);
// torch.amax, torch.amin.
ValueId amax(FusionBuilder& b, ValueId x, const Axes& axes = {}, bool keepdim = false);
ValueId amin(FusionBuilder& b, ValueId x, const Axes& axes = {}, bool keepdim = false);
// torch.any, torch.all. NaN is true. The result is always bool (PyTorch gives u8 for u8).
ValueId any(FusionBuilder& b, ValueId x, const Axes& axes = {}, bool keepdim = false);
ValueId all(FusionBuilder& b, ValueId x, const Axes& axes = {}, bool keepdim = false);
// torch.argmax, torch.argmin: the i64 index of the first extreme element, or of the first NaN if
// there is one. Without an axis they search all elements in row-major order.
ValueId argmax(FusionBuilder& b, ValueId x, std::optional<int64_t> axis = {}, bool keepdim = false);
ValueId argmin(FusionBuilder& b, ValueId x, std::optional<int64_t> axis = {}, bool keepdim = false);
// torch.logsumexp: log(sum(exp(x - m))) + m. m is the maximum, or 0 if the maximum is infinite.
ValueId logsumexp(FusionBuilder& b, ValueId x, const Axes& axes = {}, bool keepdim = false);

// --- shapes (ir/composite/shape.cpp) -------------------------------------------------------------

// Tensor.expand_as: expands `x` to the axes and extents of `y`.
ValueId expandAs(FusionBuilder& b, ValueId x, ValueId y);
// torch.squeeze: removes the listed axes that have extent 1. An empty list means all axes (in the
// text form it means none). An axis whose extent is known only at run time stays.
ValueId squeeze(FusionBuilder& b, ValueId x, const Axes& axes = {});
// torch.unsqueeze.
ValueId unsqueeze(FusionBuilder& b, ValueId x, int64_t axis);
// torch.transpose.
ValueId transpose(FusionBuilder& b, ValueId x, int64_t axis0, int64_t axis1);
// torch.flatten: merges the axes start to end, both included, into one.
ValueId flatten(FusionBuilder& b, ValueId x, int64_t start = 0, int64_t end = -1);
// x[start:stop:step] along one axis, as in a Python slice. Negative bounds count from the end,
// bounds outside are clamped, and no `stop` means the end. `step` must be positive.
ValueId sliceAxis(FusionBuilder& b, ValueId x, int64_t axis, std::optional<Size> start = {},
                  std::optional<Size> stop = {}, int64_t step = 1);
// torch.select: element `index` of an axis; removes the axis.
ValueId select(FusionBuilder& b, ValueId x, int64_t axis, int64_t index);
// torch.cat, with its type promotion; torch.stack.
ValueId cat(FusionBuilder& b, const std::vector<ValueId>& values, int64_t axis = 0);
ValueId stack(FusionBuilder& b, const std::vector<ValueId>& values, int64_t axis = 0);
// torch.chunk: pieces of ceil(n / chunks) elements. The last one may be shorter, and there may be
// fewer than `chunks`. An extent known only at run time gives exactly `chunks` pieces, of which the
// last ones may be empty. `chunks` is at most 4096.
std::vector<ValueId> chunk(FusionBuilder& b, ValueId x, int64_t chunks, int64_t axis = 0);
// Tensor.repeat. `repeats` may be longer than the rank; the additional entries give new leading
// axes.
ValueId repeat(FusionBuilder& b, ValueId x, const std::vector<int64_t>& repeats);

// --- new tensors and indexing (ir/composite/creation_and_indexing.cpp) ---------------------------

// torch.zeros, torch.ones.
ValueId zeros(FusionBuilder& b, std::vector<Size> sizes, DType dtype = DType::F32);
ValueId ones(FusionBuilder& b, std::vector<Size> sizes, DType dtype = DType::F32);
// torch.arange: the numbers start, start + step, ... that come before stop. The default dtype is
// i64 if all three arguments are integers, else f32. The numbers are computed in i64 if all
// arguments are integers or if the dtype is not a float type, else in f64.
ValueId arange(FusionBuilder& b, Scalar start, Scalar stop, Scalar step = int64_t{1},
               std::optional<DType> dtype = {});
// torch.eye. One size gives a square matrix.
ValueId eye(FusionBuilder& b, const std::vector<Size>& sizes, DType dtype = DType::F32);
// torch.tril, torch.triu: set the elements above (below) a diagonal of the last two axes to zero.
ValueId tril(FusionBuilder& b, ValueId x, int64_t diagonal = 0);
ValueId triu(FusionBuilder& b, ValueId x, int64_t diagonal = 0);
// torch.nn.functional.one_hot: i64, with a new last axis. A class out of range gives only zeros
// (PyTorch raises an error).
ValueId oneHot(FusionBuilder& b, ValueId x, int64_t num_classes);

// Indices may have any integer type. An index out of range reads NaN for float types and 0 for
// other types (PyTorch raises an error).

// torch.index_select: `index` has one axis, or no axes for a single index.
ValueId indexSelect(FusionBuilder& b, ValueId x, ValueId index, int64_t axis);
// torch.nn.functional.embedding: rows of `weight` [v, d].
ValueId embedding(FusionBuilder& b, ValueId index, ValueId weight);
// torch.gather: `index` has the rank of `x`. Along axes other than `axis` it may be smaller than
// `x`.
ValueId gather(FusionBuilder& b, ValueId x, ValueId index, int64_t axis);
struct Sorted {
  ValueId values;
  ValueId indices;  // i64
};
// torch.sort, always stable. NaN is above every number.
Sorted sort(FusionBuilder& b, ValueId x, int64_t axis = -1, bool descending = false);
// torch.topk, sorted. Equal values are in the order of their indices.
Sorted topk(FusionBuilder& b, ValueId x, int64_t k, int64_t axis = -1, bool largest = true);

// --- random (ir/composite/random.cpp) ------------------------------------------------------------
// Philox4x32-10 (Salmon et al. 2011). The key is `seed`; the counter is the row-major index of the
// element in the unsharded tensor, and `offset`. The random bits, and all results except normal(),
// are therefore equal on every backend and for every sharding. normal() is not, because log and cos
// differ between backends. Seed and
// offset are i64 scalars. A second tensor with the same seed needs another offset.

struct Philox {
  ValueId seed;
  ValueId offset;
};
// i64: words 0 (lower half) and 1 (upper half) of the Philox block.
ValueId randomBits(FusionBuilder& b, const std::vector<Size>& sizes, Philox philox);
// Returns uniform numbers in [low, high). low and high are first rounded to the type. A result is
// low + u * (high - low), or u * high + (1 - u) * low if high - low is infinite. It is at most the
// largest number of the type below high. It is computed in f64 and rounded once. u has as many bits
// as the type has binary digits:
//   f32: (word 0 >> 8) * 2^-24      f64: (both words >> 11) * 2^-53
//   f16: (word 0 >> 21) * 2^-11     bf16: (word 0 >> 24) * 2^-8
ValueId uniform(FusionBuilder& b, const std::vector<Size>& sizes, Philox philox, double low = 0,
                double high = 1, DType dtype = DType::F32);
// mean + std * z with z = sqrt(-2 log u1) cos(2 pi u2) (Box and Muller 1958), computed in f64 and
// rounded once. u1 = (word 0 + 1) * 2^-32 and u2 = word 1 * 2^-32.
ValueId normal(FusionBuilder& b, const std::vector<Size>& sizes, Philox philox, double mean = 0,
               double stddev = 1, DType dtype = DType::F32);
// Returns bools: true if a uniform f32 number is below p. p is first rounded to f32.
ValueId bernoulli(FusionBuilder& b, const std::vector<Size>& sizes, Philox philox, double p = 0.5);
// torch.bernoulli: an element is 1 with the probability that `p` has at its index, else 0. The
// dtype is that of `p`.
ValueId bernoulli(FusionBuilder& b, ValueId p, Philox philox);
// i64 in [low, high): low + bits mod (high - low). `bits` is word 0, or both words as one unsigned
// number of 64 bits if the range exceeds 2^32.
ValueId randint(FusionBuilder& b, const std::vector<Size>& sizes, Philox philox, int64_t low,
                int64_t high);
struct Dropout {
  ValueId y;
  ValueId mask;  // bool: true for elements that are kept
};
// torch.nn.functional.dropout in training: mask = (uniform f32 < 1 - p) and y = x * mask / (1 - p).
// y is 0 for p = 1.
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
// torch.nn.functional.glu: first half * sigmoid(second half) of an axis with an even extent.
ValueId glu(FusionBuilder& b, ValueId x, int64_t axis = -1);
// Return the gradients of gelu, silu and swiglu. x, gate and up are the inputs of the forward.
ValueId geluBackward(FusionBuilder& b, ValueId dy, ValueId x, GeluKind kind = GeluKind::None);
ValueId siluBackward(FusionBuilder& b, ValueId dy, ValueId x);
struct SwigluGrads {
  ValueId gate;
  ValueId up;
};
SwigluGrads swigluBackward(FusionBuilder& b, ValueId dy, ValueId gate, ValueId up);
// dy * mask / (1 - p), or 0 for p = 1.
ValueId dropoutBackward(FusionBuilder& b, ValueId dy, ValueId mask, double p = 0.5);

// --- softmax and normalizations (ir/composite/norms.cpp, ir/composite/norms_backward.cpp) --------
// Weight and bias are optional (kNoValue). Their dtype is that of `x`, or f32 if `x` has a half
// type.

// torch.softmax, torch.log_softmax: exp(x - max) / sum over one axis, and its logarithm.
ValueId softmax(FusionBuilder& b, ValueId x, int64_t axis = -1);
ValueId logSoftmax(FusionBuilder& b, ValueId x, int64_t axis = -1);
// Their gradients, computed from the results y of the forward.
ValueId softmaxBackward(FusionBuilder& b, ValueId dy, ValueId y, int64_t axis = -1);
ValueId logSoftmaxBackward(FusionBuilder& b, ValueId dy, ValueId y, int64_t axis = -1);

// torch.nn.functional.layer_norm over the last `dims` axes, with the biased variance. 0 means as
// many axes as the weight has, or 1 without a weight.
ValueId layerNorm(FusionBuilder& b, ValueId x, ValueId weight = kNoValue, ValueId bias = kNoValue,
                  double eps = 1e-5, int64_t dims = 0);
// torch.nn.functional.rms_norm. Without eps it uses the machine epsilon of the type, or that of f32
// for half types.
ValueId rmsNorm(FusionBuilder& b, ValueId x, ValueId weight = kNoValue,
                std::optional<double> eps = {}, int64_t dims = 0);
// torch.nn.functional.group_norm of x[n, c, ...].
ValueId groupNorm(FusionBuilder& b, ValueId x, int64_t groups, ValueId weight = kNoValue,
                  ValueId bias = kNoValue, double eps = 1e-5);
struct BatchNorm {
  ValueId y;
  ValueId running_mean;  // (1 - momentum) * old + momentum * mean of the batch
  ValueId running_var;   // the same for the variance with correction 1
};
// torch.nn.functional.batch_norm(training=True) of x[n, c, ...]. It normalizes with the biased
// variance. An empty batch leaves the running statistics unchanged.
BatchNorm batchNorm(FusionBuilder& b, ValueId x, ValueId running_mean, ValueId running_var,
                    ValueId weight = kNoValue, ValueId bias = kNoValue, double momentum = 0.1,
                    double eps = 1e-5);

struct NormGrads {
  ValueId x;
  ValueId weight;
  ValueId bias;  // kNoValue for rmsNormBackward
};
// Return the gradients of the normalizations. They compute the statistics of `x` again. If no
// weight is given, the gradient of the weight is computed as for a weight of ones.
NormGrads layerNormBackward(FusionBuilder& b, ValueId dy, ValueId x, ValueId weight = kNoValue,
                            double eps = 1e-5, int64_t dims = 0);
NormGrads rmsNormBackward(FusionBuilder& b, ValueId dy, ValueId x, ValueId weight = kNoValue,
                          std::optional<double> eps = {}, int64_t dims = 0);
NormGrads batchNormBackward(FusionBuilder& b, ValueId dy, ValueId x, ValueId weight = kNoValue,
                            double eps = 1e-5);

// --- losses (ir/composite/losses.cpp) ------------------------------------------------------------

enum class LossReduction : uint8_t { Mean, Sum, None };
struct CrossEntropyOptions {
  LossReduction reduction = LossReduction::Mean;  // over targets that are not ignored
  int64_t ignore_index = -100;
  double label_smoothing = 0;
  ValueId weight = kNoValue;  // [c], per class; the dtype of x, or f32 if x has a half type
};
// torch.nn.functional.cross_entropy of logits x[c], x[n, c] or x[n, c, ...]. The target holds class
// indices in the shape [], [n] or [n, ...], or probabilities in the shape and dtype of x. A class
// out of range that is not ignored gives NaN (PyTorch raises an error).
ValueId crossEntropy(FusionBuilder& b, ValueId x, ValueId target,
                     const CrossEntropyOptions& options = {});
// Returns the gradient of crossEntropy() with respect to x. `dloss` has the shape of the loss.
ValueId crossEntropyBackward(FusionBuilder& b, ValueId dloss, ValueId x, ValueId target,
                             const CrossEntropyOptions& options = {});
// torch.nn.functional.mse_loss. It broadcasts its operands; PyTorch does so with a warning.
ValueId mseLoss(FusionBuilder& b, ValueId x, ValueId target,
                LossReduction reduction = LossReduction::Mean);
// Returns the gradient of embedding() with respect to `weight` [num_embeddings, d]. Contributions
// to one row are added in the order of the indices. The gradient of row padding_idx is 0. A
// negative padding_idx counts from the end, which requires that num_embeddings is a number.
ValueId embeddingBackward(FusionBuilder& b, ValueId dy, ValueId index, const Size& num_embeddings,
                          std::optional<int64_t> padding_idx = {});

// --- attention (ir/composite/attention.cpp) ------------------------------------------------------

// Rotary position embedding of x[..., t, d] (Su et al. 2021) in the rotate-half convention of
// GPT-NeoX and Llama. With x1 and x2 the halves of the last axis, the result is [x1 cos - x2 sin,
// x2 cos + x1 sin]. cos and sin are [t, d/2]. The gradient is rope of dy with -sin.
ValueId rope(FusionBuilder& b, ValueId x, ValueId cos, ValueId sin);
// The same with the angle t * base^(-2i/d) for position t and pair i, computed in f32 (f64 for
// f64).
ValueId rope(FusionBuilder& b, ValueId x, double base = 10000);

struct AttentionOptions {
  bool causal = false;          // query i sees the keys 0 .. i
  std::optional<double> scale;  // default: 1 / sqrt(e)
  bool gqa = false;             // several query heads share a head of k and v
};
// torch.nn.functional.scaled_dot_product_attention of q[..., l, e], k[..., s, e], v[..., s, d],
// whose leading axes are broadcast.
//  - gqa (PyTorch: enable_gqa): the number of heads (axis -3) of q is a multiple of the number of
//    heads of k and v. Consecutive heads of q share one head of k and v.
//  - mask (kNoValue: none): a float mask is added to the scores. A bool mask is true for the scores
//    that count. The mask is broadcast to [..., l, s].
//  - The result is 0 for a query that sees no key.
//  - Half types compute in f32 from the first op to the last, as PyTorch's math path does. Scores
//    and probabilities are not rounded. If cuDNN computes the attention, it rounds more
//    (host/device/attention.h).
ValueId attention(FusionBuilder& b, ValueId q, ValueId k, ValueId v, ValueId mask = kNoValue,
                  const AttentionOptions& options = {});
struct AttentionGrads {
  ValueId q;
  ValueId k;
  ValueId v;
};
// The gradient of attention(). It computes the probabilities again.
AttentionGrads attentionBackward(FusionBuilder& b, ValueId dy, ValueId q, ValueId k, ValueId v,
                                 ValueId mask = kNoValue, const AttentionOptions& options = {});

}  // namespace heddle
