#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "host/device/device.h"
#include "ir/segment/segment.h"

namespace heddle::host {

// Computes scaled_dot_product_attention and its backward pass with one library call each. The
// library is cuDNN, on CUDA devices, for f16 and bf16. In a fusion, attention is written as several
// ops (matrix products, a softmax and so on), so that the sharding rules of these ops apply.
// segment() puts these ops into one group if the library can compute them. Below, "the ops" is a
// computation without the library, op by op.
//
// Rounding. cuDNN and the ops accumulate in f32. cuDNN rounds the probabilities to the half type
// before it multiplies them by v; the ops keep the probabilities in f32. Let u be 2^-8 for bf16 and
// 2^-11 for f16. Errors are differences from exact arithmetic.
// - cuDNN: the error of an element of the result is at most 2 u max|v|.
// - The ops: the error of an element is at most u times its magnitude.
// - Both bounds require that f32 can represent the scores. The rounding errors of the scores add to
//   both bounds: e 2^-22 times the largest product of a row of q and a row of k, where e is the
//   width of q.
// - If all scores of a row overflow to -inf, the ops return 0. The result of cuDNN is unspecified.
// - If several heads of q share a head of k and v (grouped-query attention, forward only), k and v
//   are repeated in the workspace.
//
// Backward pass. The library call first computes o and the log-sum-exp of each row again, in the
// workspace. The ops keep the following three values in f32, but cuDNN rounds them to the half
// type:
// - o,
// - the probabilities p, before they are multiplied by the gradient g of o,
// - the gradient ds of q k^T, before it is multiplied by k and q.
// Let c = |scale|, a_id = sum_j p_ij |v_jd| and t_i = 2 sum_d |g_id| a_id. To first order in u, the
// errors of cuDNN are at most:
//   dv_jx: u (sum_i p_ij |g_ix| + |dv_jx|)
//   dq_ix: u (sum_j (|ds_ij| + c p_ij t_i) |k_jx| + |dq_ix|)
//   dk_jx: u (sum_i (|ds_ij| + c p_ij t_i) |q_ix| + |dk_jx|)
// The error of the ops is at most u times the magnitude of the element. The statements above about
// scores also apply to the backward pass.
//
// Determinism. The same operands give the same bits, because heddle requests sums without atomics
// from cuDNN. cuDNN therefore stores ds of all heads, which takes 2 bytes per element of
// [batch..., queries, keys]. The ops store several such tensors with 4 bytes per element.

// Describes the operands of a call: the memory of each operand on this rank. The axes of each
// operand are up to two batch axes, then tokens and width. isReadable() says which strides are
// allowed.
struct AttentionSpec {
  TensorDesc q;
  TensorDesc k;
  TensorDesc v;
  TensorDesc o;
  bool causal = false;  // row i attends to keys 0 to i
  float scale = 1;
};
struct AttentionBackwardSpec {
  TensorDesc grad;  // gradient of o
  TensorDesc q;
  TensorDesc k;
  TensorDesc v;
  TensorDesc dq;
  TensorDesc dk;
  TensorDesc dv;
  bool causal = false;
  float scale = 1;
};

// A call for which everything except the addresses is decided.
//
// Threads:   immutable; several threads may run it.
// Lifetimes: it must outlive the work that it enqueues, and its device must outlive it.
class PreparedAttention {
 public:
  struct Memory {
    std::array<void*, 7> operands{};  // the tensors of the spec, in the order of its members
    void* workspace = nullptr;        // workspaceBytes(), 256-byte aligned
  };
  virtual ~PreparedAttention() = default;
  virtual int64_t workspaceBytes() const = 0;
  virtual void run(const Memory& memory, Stream stream, const Issue& issue) const = 0;
};

// Returns whether cuDNN can read and write a tensor in place. The plan (host/plan) copies every
// tensor for which the result is false. The conditions are:
// - The width axis has stride 1, or has only one element.
// - Every other axis with several elements has a stride that is a positive multiple of 16 bytes.
// - `byte_offset`, the offset of the tensor in its allocation, is a multiple of 16.
bool isReadable(const TensorDesc& desc, int64_t byte_offset);

// The entry points of libheddle_cudnn, which exports `extern "C" const CudnnModule*
// heddleCudnnModule()`.
struct CudnnModule {
  int64_t (*version)();  // the result of cudnnGetVersion(): 91501 is 9.15.1
  // Prepare a call on GPU `device`. Throw UserError with cuDNN's message if cuDNN cannot compute
  // the call.
  std::shared_ptr<const PreparedAttention> (*prepare)(const AttentionSpec& spec, int device);
  std::shared_ptr<const PreparedAttention> (*prepareBackward)(const AttentionBackwardSpec& spec,
                                                              int device);
};

// Returns the module, or nullptr with the reason in `why`.
const CudnnModule* findCudnnModule(std::string& why);

// Returns options that select which attentions of a fusion become one library call on devices of
// this kind. An attention is selected if all of the following hold:
// - The device is a CUDA device and libheddle_cudnn can be loaded.
// - The widths of q and v are known and are 8, 16, ... 128.
// - There is at least one key. For a forward pass, an unknown number of keys is assumed to be
//   positive.
// - For a backward pass, the numbers of tokens are known, and whyNotTokens() returns "".
SegmentOptions attentionOptions(DeviceKind kind, SizeBindings sizes);

// Returns "" if cuDNN's backward pass is used for these numbers of tokens, otherwise the reason why
// it is not used. The limits have these reasons:
// - The kernels process keys in tiles of 128. They give score 0 to the missing keys of the last
//   tile. If all scores of a row are below -88, the probability of a missing key becomes infinite
//   and the gradient becomes NaN. This does not happen if the causal mask covers the missing keys.
// - A single query has the same problem with the missing queries of its tile.
// - Kernels of cuDNN 9.15.0 and earlier may also read memory after the last key.
// - Versions before 9.14 have not been tested.
std::string whyNotTokens(bool causal, int64_t queries, int64_t keys, int64_t cudnn_version);

// Returns the properties of the sizes on which the selection of an attention depends. If two sets
// of sizes have equal properties, the selection is equal too. `sizes` must bind every symbol.
std::vector<int64_t> decidingSizes(const Fusion& fusion, const Attention& attention,
                                   const SizeBindings& sizes);

}  // namespace heddle::host
