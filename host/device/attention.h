#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "host/device/device.h"
#include "ir/segment/segment.h"

namespace heddle::host {

// scaled_dot_product_attention and its backward as one call of a library each: those of f16 and
// bf16 on CUDA, by cuDNN. In a fusion attention stays the ops it is made of, so that it is sharded
// as they are; segment() gives all of them to one group where the library takes them.
//
// cuDNN accumulates in f32 and rounds the probabilities to the half type before they are multiplied
// by v, where the ops keep them in f32. So against exact arithmetic an element of the result is off
// by at most 2 u max|v|, with u = 2^-8 of bf16 and 2^-11 of f16; the ops are off by u of
// the element itself. The bound holds for scores that f32 holds, whose own error, e 2^-22
// of the largest product of a row of q and one of k, comes on top of both. Of a row
// whose scores all overflow to -inf the ops make 0; what cuDNN makes of it is not stated.
// Heads of k and v that stand for several of q (gqa, forward alone) are repeated in the workspace.
//
// The backward computes o and the sums of its rows again, in the workspace. It rounds to the half
// type what the ops keep in f32: o, the probabilities p before they are multiplied by the gradient
// g of o, and the gradient ds of q k^T before it is multiplied by k and q. With c = |scale|,
// a_id = sum_j p_ij |v_jd| and t_i = 2 sum_d |g_id| a_id, it is off from exact arithmetic by at
// most
//   dv_jx: u (sum_i p_ij |g_ix| + |dv_jx|)
//   dq_ix: u (sum_j (|ds_ij| + c p_ij t_i) |k_jx| + |dq_ix|)
//   dk_jx: u (sum_i (|ds_ij| + c p_ij t_i) |q_ix| + |dk_jx|)
// to first order in u, where the ops are off by u of the element itself; what was said of the
// scores holds here too. The same operands give the same bits: cuDNN is asked for sums without
// atomics, and therefore has ds of all heads in memory, 2 bytes an element of [batch..., queries,
// keys], where the ops have several tensors of 4 bytes.

// What a call is prepared for: memory of each operand, local to the rank. Up to two batch axes,
// then tokens and width; row-major or not, but as isReadable() says.
struct AttentionSpec {
  TensorDesc q;
  TensorDesc k;
  TensorDesc v;
  TensorDesc o;
  bool causal = false;  // row i sees the keys 0 to i
  float scale = 1;
};
struct AttentionBackwardSpec {
  TensorDesc grad;  // that of o
  TensorDesc q;
  TensorDesc k;
  TensorDesc v;
  TensorDesc dq;
  TensorDesc dk;
  TensorDesc dv;
  bool causal = false;
  float scale = 1;
};

// A call with everything settled but its addresses. Immutable: several threads may run it. It
// outlives the work it enqueues, and its device outlives it.
class PreparedAttention {
 public:
  struct Memory {
    std::array<void*, 7> operands{};  // the tensors of its spec in their order
    void* workspace = nullptr;        // workspaceBytes(), 256-byte aligned
  };
  virtual ~PreparedAttention() = default;
  virtual int64_t workspaceBytes() const = 0;
  virtual void run(const Memory& memory, Stream stream, const Issue& issue) const = 0;
};

// Whether cuDNN reads or writes a tensor where it lies: the width without gaps, all other strides
// in vectors of 16 bytes and not 0. Others are copied, by the plan.
bool isReadable(const TensorDesc& desc, int64_t byte_offset);

// libheddle_cudnn: `extern "C" const CudnnModule* heddleCudnnModule()`.
struct CudnnModule {
  int64_t (*version)();  // as cudnnGetVersion()
  // UserError, with what cuDNN says of it, for what it has no plan for.
  std::shared_ptr<const PreparedAttention> (*prepare)(const AttentionSpec& spec, int device);
  std::shared_ptr<const PreparedAttention> (*prepareBackward)(const AttentionBackwardSpec& spec,
                                                              int device);
};

// nullptr with the reason in `why`.
const CudnnModule* findCudnnModule(std::string& why);

// Which attentions of a fusion become one call on devices of a kind, with these sizes: those with
// widths of 8, 16, ... 128 and at least one key; of backwards, those with tokens as whyNotTokens()
// has them. A size without a value is not known; the keys of a forward without one are taken to be
// there.
SegmentOptions attentionOptions(DeviceKind kind, SizeBindings sizes);

// Why cuDNN's backward is not asked for the gradients of so many tokens; "" when it is. Its kernels
// take keys in tiles of 128, and what stands in the rest of the last one to have the score 0: where
// all scores of a row are below -88 that is infinite as a share, and NaN as a gradient, unless the
// mask covers it. Of a single query it has the same of the rest of the queries' tile. Until 9.15.0
// it may read memory behind the last key, too; nothing was tried before 9.14.
std::string whyNotTokens(bool causal, int64_t queries, int64_t keys, int64_t cudnn_version);

// What of the sizes decides that: where it is equal, so is the answer. All of `sizes` are known.
std::vector<int64_t> decidingSizes(const Fusion& fusion, const Attention& attention,
                                   const SizeBindings& sizes);

}  // namespace heddle::host
