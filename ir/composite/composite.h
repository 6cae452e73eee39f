#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ir/graph/builder.h"

// A composite op ("composite") is a function that appends ops, usually several, to a FusionBuilder.
// The text form calls composites by name (docs/ops.md, `heddle ops`). heddle fuses the ops of a
// composite like all other ops. If a function follows a function of PyTorch, its comment names that
// function. Defaults, shapes and results are then those of PyTorch, except where a comment states a
// difference.
//
// Rounding: if operands have a half type (f16, bf16), each result has the value that a computation
//           in f32 gives, rounded once, at the end. attention() has an exception.
// Sizes:    every size in a formula is unsharded.
// Axes:     a negative axis counts from the end. A tensor without axes counts as a tensor with one
//           axis and one element; the axis argument is then 0 or -1. sliceAxis(), select(),
//           chunk(), cat() and glu() refuse a tensor without axes, and so does topk() if k is an
//           expression.
// Grads:    a function named ...Backward returns gradients. Its operand `dy` (or `dloss`) is the
//           gradient with respect to the result of the forward function.
// Errors:   UserError with the name of the composite, its operand and the source line.
namespace heddle {

using Axes = std::vector<int64_t>;

// --- reductions. An empty list of axes means all axes --------------------------------------------

// torch.mean. This function and var(), stddev(), varMean() and welford() accept only tensors of a
// float type other than f8.
ValueId mean(FusionBuilder& b, ValueId x, const Axes& axes = {}, bool keepdim = false);
// torch.var: sum((x - mean)^2) / max(n - correction, 0), computed in two sweeps. n is the number of
// elements that are averaged.
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
// The results of welford(): the average, the sum of squared differences from the average (m2), and
// the number of elements (i64). These are the quantities of Welford's method. welford() needs two
// sweeps over the data.
struct Welford {
  ValueId average;
  ValueId m2;
  ValueId count;
};
Welford welford(FusionBuilder& b, ValueId x, const Axes& axes = {}, bool keepdim = false);
// torch.amax and torch.amin.
ValueId amax(FusionBuilder& b, ValueId x, const Axes& axes = {}, bool keepdim = false);
ValueId amin(FusionBuilder& b, ValueId x, const Axes& axes = {}, bool keepdim = false);
// torch.any and torch.all. NaN counts as true. The result is always bool (for a u8 tensor, PyTorch
// returns u8).
ValueId any(FusionBuilder& b, ValueId x, const Axes& axes = {}, bool keepdim = false);
ValueId all(FusionBuilder& b, ValueId x, const Axes& axes = {}, bool keepdim = false);
// torch.argmax and torch.argmin: return the i64 index of the largest or smallest element, or of the
// first NaN if there is a NaN. If several elements are equal, the index of the first one is
// returned. Without an axis they search all elements in row-major order.
ValueId argmax(FusionBuilder& b, ValueId x, std::optional<int64_t> axis = {}, bool keepdim = false);
ValueId argmin(FusionBuilder& b, ValueId x, std::optional<int64_t> axis = {}, bool keepdim = false);
// torch.logsumexp: log(sum(exp(x - m))) + m, where m is the maximum of x, or 0 if the maximum is
// infinite. Integers and bools are first cast to f32.
ValueId logsumexp(FusionBuilder& b, ValueId x, const Axes& axes = {}, bool keepdim = false);

// Returns the value of `size` as an i64 scalar, computed by ops on scalars. The value may be
// negative. If `size` contains the values of scalar inputs, each run computes the scalar from its
// inputs. Runs with different inputs can therefore share a plan.
ValueId scalarFrom(FusionBuilder& b, const Size& size);

// --- shapes --------------------------------------------------------------------------------------

// Tensor.expand_as: expands `x` to the axes and extents of `y`.
ValueId expandAs(FusionBuilder& b, ValueId x, ValueId y);
// torch.squeeze: removes the listed axes that have extent 1. An empty list means all axes. (In the
// text form, an empty list means no axes, and a missing list means all axes.) An axis with a
// symbolic extent stays.
ValueId squeeze(FusionBuilder& b, ValueId x, const Axes& axes = {});
// torch.unsqueeze.
ValueId unsqueeze(FusionBuilder& b, ValueId x, int64_t axis);
// torch.transpose.
ValueId transpose(FusionBuilder& b, ValueId x, int64_t axis0, int64_t axis1);
// torch.flatten: merges the axes start to end, both included, into one.
ValueId flatten(FusionBuilder& b, ValueId x, int64_t start = 0, int64_t end = -1);
// Returns x[start:stop:step] along one axis, as a Python slice does. A negative number counts from
// the end. A bound that is an expression never counts from the end. Bounds outside of the axis are
// clamped: an expression that is negative in a run counts as 0. Without `stop` the slice ends at
// the end of the axis. `step` must be positive.
ValueId sliceAxis(FusionBuilder& b, ValueId x, int64_t axis, std::optional<Size> start = {},
                  std::optional<Size> stop = {}, int64_t step = 1);
// torch.select: selects element `index` of an axis and removes the axis. A negative number counts
// from the end. An index that is an expression never counts from the end: it must be 0 or more in
// every run.
ValueId select(FusionBuilder& b, ValueId x, int64_t axis, const Size& index);
// torch.cat (with PyTorch's type promotion) and torch.stack.
ValueId cat(FusionBuilder& b, const std::vector<ValueId>& values, int64_t axis = 0);
ValueId stack(FusionBuilder& b, const std::vector<ValueId>& values, int64_t axis = 0);
// torch.chunk: splits an axis of extent n into pieces of ceil(n / chunks) elements. The last piece
// may be shorter, and there may be fewer than `chunks` pieces. A symbolic extent gives exactly
// `chunks` pieces, and the last pieces may be empty. `chunks` is at most 4096.
std::vector<ValueId> chunk(FusionBuilder& b, ValueId x, int64_t chunks, int64_t axis = 0);
// Tensor.repeat. `repeats` may be longer than the rank of `x`; the additional leading entries
// create new leading axes.
ValueId repeat(FusionBuilder& b, ValueId x, const std::vector<Size>& repeats);

// --- new tensors and indexing --------------------------------------------------------------------

// torch.zeros and torch.ones.
ValueId zeros(FusionBuilder& b, std::vector<Size> sizes, DType dtype = DType::F32);
ValueId ones(FusionBuilder& b, std::vector<Size> sizes, DType dtype = DType::F32);
// torch.arange: the numbers start, start + step, ... before stop. Each of the three is an integer
// (Size) or a float (double). The default dtype is i64 if all three are integers, otherwise f32.
// The numbers are computed in f64 if one of the three is a float and the dtype is a float type,
// otherwise in i64. If none of the three is a float, `start` and `stop` may be expressions of sizes
// and scalars. `step` must always be a number. A `step` that leads away from `stop` is an error if
// `start` and `stop` are numbers, as in PyTorch. If one of them is an expression, such a step gives
// no elements.
using ArangeBound = std::variant<Size, double>;
ValueId arange(FusionBuilder& b, const ArangeBound& start, const ArangeBound& stop,
               const ArangeBound& step = Size(1), std::optional<DType> dtype = {});
// torch.eye. One size gives a square matrix.
ValueId eye(FusionBuilder& b, const std::vector<Size>& sizes, DType dtype = DType::F32);
// torch.tril and torch.triu: set the elements above (tril) or below (triu) a diagonal of the last
// two axes to zero. The diagonal may be an expression of sizes and scalars.
ValueId tril(FusionBuilder& b, ValueId x, const Size& diagonal = 0);
ValueId triu(FusionBuilder& b, ValueId x, const Size& diagonal = 0);
// torch.nn.functional.one_hot: the result is i64 and has a new last axis of num_classes elements. A
// class out of range gives only zeros (PyTorch raises an error).
ValueId oneHot(FusionBuilder& b, ValueId x, int64_t num_classes);

// indexSelect(), embedding() and gather() accept indices of any integer type. An index out of range
// reads NaN for float types and 0 for other types (PyTorch raises an error).

// torch.index_select: selects elements along `axis`. `index` has one axis, or no axes for a single
// index.
ValueId indexSelect(FusionBuilder& b, ValueId x, ValueId index, int64_t axis);
// torch.nn.functional.embedding: selects rows of `weight` [v, d].
ValueId embedding(FusionBuilder& b, ValueId index, ValueId weight);
// torch.gather: `index` has the rank of `x`. Along axes other than `axis`, `index` may be smaller
// than `x`.
ValueId gather(FusionBuilder& b, ValueId x, ValueId index, int64_t axis);
struct Sorted {
  ValueId values;
  ValueId indices;  // i64
};
// torch.sort. The sort is always stable, and NaN counts as greater than every number.
Sorted sort(FusionBuilder& b, ValueId x, int64_t axis = -1, bool descending = false);
// torch.topk. The result is sorted, and equal values are in the order of their indices. `k` may be
// an expression of sizes and scalars. Every run then checks that k is at most the extent of the
// axis, and at most `most` if given. With `most`, the sort returns only the first `most` indices
// along the axis, which saves time and memory if `most` is small.
Sorted topk(FusionBuilder& b, ValueId x, const Size& k, int64_t axis = -1, bool largest = true,
            std::optional<int64_t> most = {});

// --- random --------------------------------------------------------------------------------------
// The random bits come from the ops philox32 and philox64. philox32 gives each element a number w
// below 2^32, and philox64 a number W of 64 bits. The operand `index` of these ops is the row-major
// index of the element in the unsharded tensor. The random bits are therefore equal on every device
// and for every sharding. The same is true for the results of all functions except normal(),
// because log and cos differ between devices. Seed and offset are i64 scalars. Two tensors with the
// same seed need different offsets; otherwise they contain the same bits.

struct Philox {
  ValueId seed;
  ValueId offset;
};
// Returns i64 elements with the bits W.
ValueId randomBits(FusionBuilder& b, const std::vector<Size>& sizes, Philox philox);
// Returns uniform numbers in [low, high), or only low if low equals high. low and high are first
// rounded to `dtype`. An element is low + u * (high - low), where u is a uniform number in [0, 1).
// u has one random bit for each bit of the mantissa of `dtype`, including the implicit bit. If
// high - low is infinite, the element is u * high + (1 - u) * low. Each element is computed in f64,
// limited to the largest number of `dtype` below high, and rounded once. The values of u:
//   f32: (w >> 8) * 2^-24      f64: (W >> 11) * 2^-53, W unsigned
//   f16: (w >> 21) * 2^-11     bf16: (w >> 24) * 2^-8
ValueId uniform(FusionBuilder& b, const std::vector<Size>& sizes, Philox philox, double low = 0,
                double high = 1, DType dtype = DType::F32);
// Returns normal numbers mean + stddev * z with z = sqrt(-2 log u1) cos(2 pi u2) (Box and Muller
// 1958). The numbers are computed in f64 and rounded once. l and h are the lower and the upper half
// of W. u1 = (l + 1) * 2^-32 and u2 = h * 2^-32.
ValueId normal(FusionBuilder& b, const std::vector<Size>& sizes, Philox philox, double mean = 0,
               double stddev = 1, DType dtype = DType::F32);
// Returns bools. An element is true if w * 2^-32 < p.
ValueId bernoulli(FusionBuilder& b, const std::vector<Size>& sizes, Philox philox, double p = 0.5);
// torch.bernoulli: each element of `p` is the probability that the element of the result at the
// same index is 1.
// p is first rounded to f32. An element is 1 if a uniform f32 number in [0, 1) is below p, and
// otherwise 0. The result has the dtype of `p`.
ValueId bernoulli(FusionBuilder& b, ValueId p, Philox philox);
// Returns i64 numbers in [low, high). With n = high - low, an element is low + w mod n, or
// low + W mod n if n exceeds 2^32. W counts as unsigned. n must be less than 2^63.
ValueId randint(FusionBuilder& b, const std::vector<Size>& sizes, Philox philox, int64_t low,
                int64_t high);
struct Dropout {
  ValueId y;
  ValueId mask;  // bool: true for elements that are kept
};
// torch.nn.functional.dropout in training: mask = (w * 2^-32 < 1 - p) and y = x * mask / (1 - p).
// y is 0 for p = 1.
Dropout dropout(FusionBuilder& b, ValueId x, Philox philox, double p = 0.5);
// Like the dropout() above, but the run gives the probability: `p` is a scalar or a tensor without
// axes, of a float type. A probability below 0 or NaN counts as 0, and one above 1 counts as 1.
// Runs with different probabilities share plan and kernel.
Dropout dropout(FusionBuilder& b, ValueId x, Philox philox, ValueId p);

// --- activations ---------------------------------------------------------------------------------

// Returns silu(gate) * up.
ValueId swiglu(FusionBuilder& b, ValueId gate, ValueId up);
enum class GeluKind : uint8_t { None, Tanh };
// torch.nn.functional.gelu (Hendrycks and Gimpel 2016). GeluKind::None gives x Phi(x), where Phi is
// the normal distribution function, computed with erf. GeluKind::Tanh gives 0.5 x (1 +
// tanh(sqrt(2/pi) (x + 0.044715 x^3))).
ValueId gelu(FusionBuilder& b, ValueId x, GeluKind kind = GeluKind::None);
// These functions return gelu(gate) * up and relu(gate) * up (Shazeer 2020).
ValueId geglu(FusionBuilder& b, ValueId gate, ValueId up, GeluKind kind = GeluKind::None);
ValueId reglu(FusionBuilder& b, ValueId gate, ValueId up);
// torch.nn.functional.glu: the first half of an axis times the sigmoid of its second half. The
// extent of the axis must be even.
ValueId glu(FusionBuilder& b, ValueId x, int64_t axis = -1);
// These functions return the gradients of gelu, silu and swiglu. x, gate and up are the inputs of
// the forward.
ValueId geluBackward(FusionBuilder& b, ValueId dy, ValueId x, GeluKind kind = GeluKind::None);
ValueId siluBackward(FusionBuilder& b, ValueId dy, ValueId x);
struct SwigluGrads {
  ValueId gate;
  ValueId up;
};
SwigluGrads swigluBackward(FusionBuilder& b, ValueId dy, ValueId gate, ValueId up);
// Returns the gradient of dropout: dy * mask / (1 - p), or 0 for p = 1.
ValueId dropoutBackward(FusionBuilder& b, ValueId dy, ValueId mask, double p = 0.5);
// Like the dropoutBackward() above, but the run gives the probability `p`.
ValueId dropoutBackward(FusionBuilder& b, ValueId dy, ValueId mask, ValueId p);

// --- softmax and normalizations ------------------------------------------------------------------
// Weight and bias are optional (kNoValue: none). They have the dtype of `x`. If `x` has a half
// type, they may also be f32.

// torch.softmax: e / sum(e) with e = exp(x - max), where sum and max are taken over one axis.
// torch.log_softmax: the logarithm of this quotient.
ValueId softmax(FusionBuilder& b, ValueId x, int64_t axis = -1);
ValueId logSoftmax(FusionBuilder& b, ValueId x, int64_t axis = -1);
// These functions return the gradients of softmax and logSoftmax. y is the result of the forward.
ValueId softmaxBackward(FusionBuilder& b, ValueId dy, ValueId y, int64_t axis = -1);
ValueId logSoftmaxBackward(FusionBuilder& b, ValueId dy, ValueId y, int64_t axis = -1);

// torch.nn.functional.layer_norm over the last `dims` axes, with the biased variance. dims = 0
// means as many axes as the weight has, or one axis if there is no weight.
ValueId layerNorm(FusionBuilder& b, ValueId x, ValueId weight = kNoValue, ValueId bias = kNoValue,
                  double eps = 1e-5, int64_t dims = 0);
// torch.nn.functional.rms_norm. Without eps it uses the machine epsilon of the type of x, or of f32
// for half types.
ValueId rmsNorm(FusionBuilder& b, ValueId x, ValueId weight = kNoValue,
                std::optional<double> eps = {}, int64_t dims = 0);
// torch.nn.functional.group_norm of x[n, c, ...].
ValueId groupNorm(FusionBuilder& b, ValueId x, int64_t groups, ValueId weight = kNoValue,
                  ValueId bias = kNoValue, double eps = 1e-5);
struct BatchNorm {
  ValueId y;
  ValueId running_mean;  // (1 - momentum) * old + momentum * mean of the batch
  ValueId running_var;   // the same formula with the variance of the batch (correction 1)
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
// These functions return the gradients of layerNorm, rmsNorm and batchNorm. They compute the
// statistics of `x` again. Without a weight, NormGrads::weight is the gradient that a weight of
// ones would get.
NormGrads layerNormBackward(FusionBuilder& b, ValueId dy, ValueId x, ValueId weight = kNoValue,
                            double eps = 1e-5, int64_t dims = 0);
NormGrads rmsNormBackward(FusionBuilder& b, ValueId dy, ValueId x, ValueId weight = kNoValue,
                          std::optional<double> eps = {}, int64_t dims = 0);
NormGrads batchNormBackward(FusionBuilder& b, ValueId dy, ValueId x, ValueId weight = kNoValue,
                            double eps = 1e-5);

// --- losses --------------------------------------------------------------------------------------

enum class LossReduction : uint8_t { Mean, Sum, None };
struct CrossEntropyOptions {
  // Mean: the mean of the losses of all targets that are not ignored. With class indices and a
  // weight, it is the mean weighted by the weights of the target classes.
  LossReduction reduction = LossReduction::Mean;
  int64_t ignore_index = -100;
  double label_smoothing = 0;
  // One factor per class, in the shape [c]; kNoValue: no factors. The weight has the dtype of x. If
  // x has a half type, it may also be f32.
  ValueId weight = kNoValue;
};
// torch.nn.functional.cross_entropy of logits x[c], x[n, c] or x[n, c, ...], where c is the number
// of classes. The target contains class indices in the shape [], [n] or [n, ...], or probabilities
// in the shape and dtype of x. A class index out of range gives NaN, except if it equals
// ignore_index (PyTorch raises an error).
ValueId crossEntropy(FusionBuilder& b, ValueId x, ValueId target,
                     const CrossEntropyOptions& options = {});
// Returns the gradient of crossEntropy() with respect to x. `dloss` has the shape of the loss.
ValueId crossEntropyBackward(FusionBuilder& b, ValueId dloss, ValueId x, ValueId target,
                             const CrossEntropyOptions& options = {});
// torch.nn.functional.mse_loss. It broadcasts its operands (PyTorch does this too, but prints a
// warning).
ValueId mseLoss(FusionBuilder& b, ValueId x, ValueId target,
                LossReduction reduction = LossReduction::Mean);
// Returns the gradient of embedding() with respect to `weight` [num_embeddings, d]. Contributions
// to one row are added in the row-major order of `index`. The gradient of row padding_idx is 0. A
// negative padding_idx counts from the end; num_embeddings must then be a number.
ValueId embeddingBackward(FusionBuilder& b, ValueId dy, ValueId index, const Size& num_embeddings,
                          std::optional<int64_t> padding_idx = {});

// --- attention -----------------------------------------------------------------------------------

// Returns the rotary position embedding of x[..., t, d] (Su et al. 2021) in the rotate-half
// convention of GPT-NeoX and Llama. x1 and x2 are the two halves of the last axis of x. The result
// is [x1 cos - x2 sin, x2 cos + x1 sin]. cos and sin have the shape [t, d/2]. The gradient of rope
// is rope of dy with -sin.
ValueId rope(FusionBuilder& b, ValueId x, ValueId cos, ValueId sin);
// Returns the rotary position embedding with the cosine and sine of the angle t * base^(-2i/d) for
// position t and element i of x1 and x2. The angles are computed in f32, or in f64 if x is f64.
ValueId rope(FusionBuilder& b, ValueId x, double base = 10000);

struct AttentionOptions {
  bool causal = false;          // true: query i attends only to the keys 0 .. i
  std::optional<double> scale;  // default: 1 / sqrt(e), where e is the last extent of q
  bool gqa = false;             // true: several heads of q share one head of k and v
};
// torch.nn.functional.scaled_dot_product_attention of q[..., l, e], k[..., s, e] and v[..., s, d].
// l is the number of queries, s the number of keys. The leading axes are broadcast.
//  - gqa (PyTorch: enable_gqa): the number of heads (axis -3) of q is a multiple of the number of
//    heads of k and v. Consecutive heads of q share one head of k and v.
//  - mask (kNoValue: none): a float mask is added to the scores. A bool mask is true for the scores
//    that are used. The mask is broadcast to [..., l, s].
//  - The result is 0 for a query that attends to no key.
//  - If operands have a half type, all ops compute in f32, as in PyTorch's math backend. Scores and
//    probabilities are not rounded. Exception: if cuDNN computes the attention, it rounds the
//    probabilities to the half type.
ValueId attention(FusionBuilder& b, ValueId q, ValueId k, ValueId v, ValueId mask = kNoValue,
                  const AttentionOptions& options = {});
struct AttentionGrads {
  ValueId q;
  ValueId k;
  ValueId v;
};
// Returns the gradients of attention(). The function computes the probabilities again.
AttentionGrads attentionBackward(FusionBuilder& b, ValueId dy, ValueId q, ValueId k, ValueId v,
                                 ValueId mask = kNoValue, const AttentionOptions& options = {});

}  // namespace heddle
