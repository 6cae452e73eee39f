#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "host/device/device.h"
#include "ir/segment/segment.h"

namespace heddle::host {

// Computes scaled_dot_product_attention and its backward with one library call each: cuDNN on CUDA,
// for f16 and bf16. A fusion contains attention as the ops that it consists of, so that the rules
// for sharding apply to these ops. segment() puts all of them into one group if the library can
// compute them.
//
// Rounding. cuDNN accumulates in f32, like the ops. It rounds the probabilities to the half type
// before it multiplies them by v; the ops keep them in f32. Let u be 2^-8 for bf16 and 2^-11 for
// f16.
// - Compared with exact arithmetic, the error of an element of the result is at most 2 u max|v|.
//   The error of the ops is u times the element.
// - The bound requires that f32 can represent the scores. The error of the scores themselves adds
//   to both: e 2^-22 times the largest product of a row of q and a row of k.
// - If all scores of a row overflow to -inf, the ops return 0. The result of cuDNN is unspecified.
// - If several heads of q share a head of k and v (grouped-query attention, forward only), k and v
//   are repeated in the workspace.
//
// Backward. It computes o and the sums of its rows again, in the workspace. It rounds three values
// to the half type that the ops keep in f32: o; the probabilities p before they are multiplied by
// the gradient g of o; and the gradient ds of q k^T before it is multiplied by k and q. With
// c = |scale|, a_id = sum_j p_ij |v_jd| and t_i = 2 sum_d |g_id| a_id, the errors compared with
// exact arithmetic are at most, to first order in u:
//   dv_jx: u (sum_i p_ij |g_ix| + |dv_jx|)
//   dq_ix: u (sum_j (|ds_ij| + c p_ij t_i) |k_jx| + |dq_ix|)
//   dk_jx: u (sum_i (|ds_ij| + c p_ij t_i) |q_ix| + |dk_jx|)
// The error of the ops is u times the element. The statements about scores apply here too.
//
// Determinism. The same operands give the same bits, because heddle asks cuDNN for sums without
// atomics. cuDNN therefore stores ds of all heads, which takes 2 bytes per element of
// [batch..., queries, keys]. The ops store several such tensors with 4 bytes per element.

// Describes the operands of a call: their rank-local memory. Each has up to two batch axes, then
// tokens and width, in any memory order that isReadable() accepts.
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

// Returns whether cuDNN can read and write a tensor in place. The plan copies other tensors. The
// conditions are:
// - The width has stride 1, unless it is 1.
// - Every other axis of more than one element has a stride that is a multiple of 16 bytes, not 0.
// - `byte_offset`, the offset of the tensor in its allocation, is a multiple of 16.
bool isReadable(const TensorDesc& desc, int64_t byte_offset);

// The entry points of libheddle_cudnn, which exports `extern "C" const CudnnModule*
// heddleCudnnModule()`.
struct CudnnModule {
  int64_t (*version)();  // the result of cudnnGetVersion(): 91501 is 9.15.1
  // Prepare a call. UserError with cuDNN's message if cuDNN has no plan for it.
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
// - There is at least one key. A forward whose number of keys is unknown is assumed to have one.
// - For a backward: the numbers of tokens are known, and whyNotTokens() accepts them.
SegmentOptions attentionOptions(DeviceKind kind, SizeBindings sizes);

// Returns why cuDNN's backward is not used for these numbers of tokens, or "" if it is used. The
// limits have these reasons:
// - The kernels process keys in tiles of 128 and give the missing keys of the last tile the
//   score 0. If all scores of a row are below -88, the probability of a missing key becomes
//   infinite and the gradient NaN, unless the mask covers the missing keys.
// - A single query has the same problem with the missing queries of its tile.
// - Up to 9.15.0 the kernels may also read memory after the last key.
// - Versions before 9.14 have not been tried.
std::string whyNotTokens(bool causal, int64_t queries, int64_t keys, int64_t cudnn_version);

// Returns the properties of the sizes that decide the selection. If they are equal for two sets of
// sizes, so is the decision. `sizes` must bind every symbol.
std::vector<int64_t> decidingSizes(const Fusion& fusion, const Attention& attention,
                                   const SizeBindings& sizes);

}  // namespace heddle::host
