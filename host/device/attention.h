#pragma once

#include <array>
#include <memory>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "host/device/device.h"
#include "ir/segment/segment.h"

namespace heddle::host {

// This file prepares calls of cuDNN. One call computes scaled_dot_product_attention or its backward
// pass. A call needs a CUDA device and operands of f16 or bf16.
//
// In a fusion, attention consists of several ops: matrix products, a softmax and so on. The
// sharding rules of these ops therefore apply to it. segment() (ir/segment/segment.h) puts these
// ops into one segment if cuDNN can compute them. Below, "the ops" means the computation op by op,
// without cuDNN.
//
// Notation. q, k and v (queries, keys and values) are the operands, o is the result. The scores are
// q k^T times the factor `scale`. A row of scores belongs to one row (token) of q. The
// probabilities are the softmax of each row of scores. The half type is the type of q: f16 or bf16.
// The letter u stands for half the distance from 1 to the next larger number of this type: 2^-8 for
// bf16 and 2^-11 for f16. Errors are differences from exact arithmetic.
//
// Rounding. cuDNN and the ops accumulate in f32. cuDNN rounds the probabilities to the half type
// before it multiplies them by v. The ops keep the probabilities in f32.
// - cuDNN: the error of an element of o is at most 2 u max|v|.
// - The ops: the error of an element of o is at most u times the magnitude of the element.
// - Both bounds require that the scores are in the range of f32.
// - Both methods also round the scores. Let w be the width of q, the number of its columns. Let s
//   be the largest value of |scale| sum_x |q_ix k_jx|, for row i of q and row j of k. Both bounds
//   then increase by w 2^-22 s max|v|.
// - If all scores of a row overflow to -inf, the ops return 0. The result of cuDNN is unspecified.
//
// Grouped-query attention. Several heads of q share one head of k and v. Only calls of the forward
// pass support this: the plan copies k and v to its workspace and repeats each head.
//
// Log-sums. The log-sums are the log-sum-exps of the rows of scores. The backward pass needs o and
// the log-sums. If the forward pass is a cuDNN call of the same program, it stores its log-sums,
// and the backward pass reads o and the log-sums. Otherwise the backward pass first computes both
// in its workspace.
//
// Backward pass. cuDNN rounds the following three values to the half type. The ops keep them in
// f32.
// - o.
// - The probabilities p, before they are multiplied by g, the gradient of o.
// - ds, the gradient of q k^T, before it is multiplied by k and q.
// To first order in u, the errors of cuDNN are at most:
//   dv_jx: u (sum_i p_ij |g_ix| + |dv_jx|)
//   dq_ix: u (sum_j (|ds_ij| + c p_ij t_i) |k_jx| + |dq_ix|)
//   dk_jx: u (sum_i (|ds_ij| + c p_ij t_i) |q_ix| + |dk_jx|)
// Definitions:
//   i, j   count rows of q, and rows of k and v
//   d, x   count columns of v, and columns of the result
//   c    = |scale|
//   a_id = sum_j p_ij |v_jd|
//   t_i  = 2 sum_d |g_id| a_id
// The error of the ops is at most u times the magnitude of the element. The rounding and the
// overflow of scores have the same effects as in the forward pass.
//
// Determinism. Equal operands give equal bits, because heddle gives cuDNN a graph that needs no
// atomic additions. This costs memory: cuDNN stores ds of all heads, a tensor [batch..., queries,
// keys] with 2 bytes per element. The ops store several tensors with these axes and 4 bytes per
// element.

// Describes a call of the forward pass: the sizes and strides of each operand on this rank. An
// operand has up to two batch axes (usually batch and heads), then an axis of tokens and an axis of
// width. isReadable() describes the strides that are allowed.
struct AttentionSpec {
  TensorDesc q;
  TensorDesc k;
  TensorDesc v;
  TensorDesc o;
  // The log-sums have dtype f32 and are dense and row-major. Their axes are the axes of o except
  // the width. nullopt: the call stores no log-sums.
  std::optional<TensorDesc> log_sums;
  bool causal = false;  // true: row i of q uses only keys 0 to i
  float scale = 1;      // factor of the scores q k^T
};
// Describes a call of the backward pass. The members have the same meaning as in AttentionSpec. The
// name of a gradient is d, followed by the name of the tensor: dq is the gradient of q.
struct AttentionBackwardSpec {
  TensorDesc grad;  // gradient of o
  TensorDesc q;
  TensorDesc k;
  TensorDesc v;
  // The results of the forward pass. A spec has both `o` and `log_sums`, or neither. nullopt: the
  // call computes them again.
  std::optional<TensorDesc> o;
  std::optional<TensorDesc> log_sums;
  TensorDesc dq;
  TensorDesc dk;
  TensorDesc dv;
  bool causal = false;
  float scale = 1;
};

using AttentionCallSpec = std::variant<AttentionSpec, AttentionBackwardSpec>;

// A call that is ready to run, except for the addresses of its tensors and workspace.
//
// Threads:   a PreparedAttention is immutable; several threads may call run().
// Lifetimes: a PreparedAttention must outlive the work that it enqueues. The device must outlive
//            the PreparedAttention.
class PreparedAttention {
 public:
  // The addresses of a call.
  struct Memory {
    // The addresses of the tensors of the spec, in the order of the members of the spec. An
    // optional member that is nullopt takes no element of this array.
    std::array<void*, 9> operands{};
    void* workspace = nullptr;  // workspaceBytes() bytes with 256-byte alignment
  };
  virtual ~PreparedAttention() = default;
  virtual int64_t workspaceBytes() const = 0;
  // Enqueues the call on `stream`.
  virtual void run(const Memory& memory, Stream stream, const Issue& issue) const = 0;
};

// Returns whether cuDNN can use a tensor of a spec in place. For the log-sums, use
// areReadableLogSums() instead. If cuDNN cannot use the tensor in place, the plan
// (host/plan/plan_attention.cpp) copies it. cuDNN can use the tensor if all of these conditions are
// true:
// - The width axis has stride 1 or size 1.
// - Every other axis has size 1, or a stride that is a multiple of 16 bytes and is not 0.
// - `byte_offset`, the offset of the tensor in its allocation, is a multiple of 16.
bool isReadable(const TensorDesc& desc, int64_t byte_offset);
// Returns whether cuDNN can use log-sums in place. They must be dense and row-major, and
// `byte_offset` must be a multiple of 16.
bool areReadableLogSums(const TensorDesc& desc, int64_t byte_offset);

// The entry points of the module libheddle_cudnn. The module exports `extern "C" const CudnnModule*
// heddleCudnnModule()`.
struct CudnnModule {
  int64_t (*version)();  // the result of cudnnGetVersion(): 91501 is 9.15.1
  // These functions return the questions of a call (AlgorithmChoices in host/device/device.h): one
  // for each graph that the call runs. The answer is an engine configuration of cuDNN. There are no
  // questions if librariesAreTimed() (host/device/timed_choice.h) is false.
  std::set<std::string> (*questions)(const AttentionSpec& spec);
  std::set<std::string> (*backwardQuestions)(const AttentionBackwardSpec& spec);
  // Answers a question of questions() or backwardQuestions(): returns the fastest engine
  // configuration on GPU `device`, or "" if cuDNN has none. The rules of Device::chooseAlgorithm()
  // apply.
  std::string (*choose)(const std::string& question, int device, Stream stream,
                        const std::string& given);
  // Both functions prepare a call on GPU `device`. For a question without a choice, or whose choice
  // cuDNN does not accept, they take the first one that cuDNN proposes. If cuDNN cannot compute
  // the call, they throw UserError with cuDNN's message.
  std::shared_ptr<const PreparedAttention> (*prepare)(const AttentionSpec& spec, int device,
                                                      const AlgorithmChoices& choices);
  std::shared_ptr<const PreparedAttention> (*prepareBackward)(const AttentionBackwardSpec& spec,
                                                              int device,
                                                              const AlgorithmChoices& choices);
};

// Returns the entry points of the module, or nullptr with the reason in `why`.
const CudnnModule* findCudnnModule(std::string& why);

// Returns whether a question (AlgorithmChoices) is about an attention: it begins with "attention".
// Other questions are about matrix products.
bool isAttentionQuestion(const std::string& question);

// Returns options for segment(). They decide which attentions of a fusion become cuDNN calls on
// devices of this kind. `sizes` contains the values of the known symbols. An attention becomes a
// call if all of these conditions are true:
// - The device is a CUDA device and libheddle_cudnn can be loaded.
// - The widths of q and v are known and are 8, 16, ... 128.
// - The number of keys is positive. In a forward pass, an unknown number of keys is assumed to be
//   positive.
// - For a backward pass, the numbers of tokens are known, and whyNotTokens() returns "".
// If a condition fails only because of the values of symbols, other values may allow the call.
// segment() then puts the ops of the attention into segments that contain no other ops. All other
// segments are therefore the same with and without the call (SegmentOptions::attention_for_sizes).
SegmentOptions attentionOptions(DeviceKind kind, SizeBindings sizes);

// Returns a version of cuDNN as its users write it: "9.15.1" for 91501, "8.9.7" for 8907.
std::string cudnnVersionText(int64_t version);

// Returns "" if heddle uses cuDNN's backward pass for these numbers of tokens, otherwise the reason
// why it does not. heddle does not use it if there are no queries or no keys. heddle also does not
// use the backward pass of cuDNN versions before 9.14, because heddle was not tested with them.
// heddle avoids some numbers of tokens because of these errors in cuDNN:
// - The kernels process keys in tiles of 128. If the last tile is incomplete, its missing keys have
//   score 0. The probability of a missing key is exp(0 - log-sum of the row). If all scores of a
//   row are below about -88, this number may exceed the range of f32, and the gradient then becomes
//   NaN. A causal mask prevents this if there are no more queries than keys, because it covers the
//   missing keys.
// - If there is a single query, the missing queries of its tile cause the same error.
// - If the last tile is incomplete, kernels of cuDNN 9.15.0 and earlier may read memory after the
//   last key.
std::string whyNotTokens(bool causal, int64_t queries, int64_t keys, int64_t cudnn_version);

// Returns the properties of `sizes` that decide whether an attention becomes a cuDNN call
// (attentionOptions()). If two sets of sizes give equal results, the attention becomes a call for
// both or for neither. `sizes` must contain every symbol.
std::vector<int64_t> decidingSizes(const Fusion& fusion, const Attention& attention,
                                   const SizeBindings& sizes);

}  // namespace heddle::host
