#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/graph/fusion.h"

namespace heddle {

// An attention (scaled_dot_product_attention) or its backward that was found in a fusion. In the
// fusion, an attention is a set of ops: matrix products, a softmax and casts. The formulas use the
// probabilities p = softmax(q k^T scale), where ^T swaps the last two axes:
//   forward:  o = p v
//   backward: dq = ds k scale, dk = ds^T q scale, dv = p^T g, where g is the gradient of o,
//             dp = g v^T and ds = p (dp - sum of p dp over the keys)
// If `why_not` is "", operands and results are f16 or bf16. The fusion then computes all of this in
// f32 and rounds each result once, at the end.
struct Attention {
  std::vector<ExprId> exprs;  // ascending; without the scalar expressions that the host evaluates
  bool backward = false;
  ValueId q = kNoValue;  // [batch..., tokens, width]
  ValueId k = kNoValue;
  ValueId v = kNoValue;
  ValueId grad = kNoValue;       // backward only: g
  std::vector<ValueId> results;  // {o}, or {dq, dk, dv}
  bool causal = false;           // query i attends only to the keys 0 .. i
  // true: grouped-query attention. Consecutive heads of q share one head of k and v. The number of
  // heads (axis -3) of q and of the result is a multiple of the number of heads of k and v.
  bool gqa = false;
  std::optional<double> scale;  // nullopt: 1 / sqrt(width)
  // segment() sets the next two members (ir/segment/library_calls.h).
  // Forward only. true: the library call also stores the log-sum-exp of each row of scores.
  bool keeps_log_sums = false;
  // Backward only: the result o of a forward with keeps_log_sums. The library call reads o and the
  // log-sum-exps of this forward. kNoValue: the library call computes both again.
  ValueId forward = kNoValue;
  // The reason why no library can compute the attention as one call, or "" if a library may. If
  // there is a reason, only `backward` and results[0] are meaningful, and `exprs` may be
  // incomplete.
  std::string why_not;

  // Returns q, k and v for a forward, and g, q, k and v for a backward.
  std::vector<ValueId> operands() const {
    if (backward) return {grad, q, k, v};
    return {q, k, v};
  }
};

// Finds the attentions of a fusion and their backwards, in the order of their softmaxes in the
// fusion. A forward is a softmax in the form that ir/composite/attention.cpp writes, followed by a
// matrix product. A backward is the gradient of this softmax and matrix product. Attention::why_not
// is empty if all of these conditions are true:
//  - The ops are exactly those of ir/composite/attention.cpp. They compute in f32.
//  - Operands and results have the same type, f16 or bf16. They have the same number of axes, with
//    at most two axes before tokens and width.
//  - The mask, if there is one, is the causal mask. The scale is a constant or 1 / sqrt(width).
//  - No axis is broadcast. The axes tokens and width are not sharded. The other axes have the same
//    sharding in all operands and results, and none of these is partial.
//  - No expression outside of the attention reads an intermediate value, and no intermediate value
//    is an output of the fusion.
//  - For a backward: the fusion computes all three results, and gqa is false.
std::vector<Attention> attentionsOf(const Fusion& fusion);

}  // namespace heddle
