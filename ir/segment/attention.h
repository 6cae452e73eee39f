#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/graph/fusion.h"

namespace heddle {

// A scaled_dot_product_attention, or its backward, as a fusion holds it, which is as the ops it is
// made of. With p = softmax(q k^T scale) of half types:
//   forward:  o = p v
//   backward: dq = ds k scale, dk = ds^T q scale, dv = p^T g, where g is the gradient of o,
//             ds = p (dp - sum(p dp, keys)) and dp = g v^T
// computed in f32, each result rounded once at the end.
struct Attention {
  std::vector<ExprId> exprs;  // all that computes nothing else, ascending; scalars not among them
  bool backward = false;
  ValueId q = kNoValue;  // [batch..., tokens, width]
  ValueId k = kNoValue;
  ValueId v = kNoValue;
  ValueId grad = kNoValue;       // of a backward: g
  std::vector<ValueId> results;  // {o}, or {dq, dk, dv}
  bool causal = false;
  // The heads, axis -3, of q and the result are a multiple of those of k and v: a head of these is
  // for as many consecutive ones of those.
  bool gqa = false;
  std::optional<double> scale;  // none: 1 / sqrt(width)
  // Why no library can be asked for it as one call; then of the others only `backward`, the first
  // of `results` and `exprs`, of which there may be fewer, mean something.
  std::string why_not;

  // What a call of it reads: q, k and v, of a backward g in front of them.
  std::vector<ValueId> operands() const {
    if (backward) return {grad, q, k, v};
    return {q, k, v};
  }
};

// Every softmax of ir/composite/attention.cpp that is multiplied by a matrix, or takes part in the
// gradient of one, in the order of the fusion. Taken for one library call are those of f16 or bf16
// with at most two batch axes, without a mask but the causal one, of which no step is read
// elsewhere, whose tokens and widths are not sharded; of a backward, all three results are read,
// and no heads are shared.
std::vector<Attention> attentionsOf(const Fusion& fusion);

}  // namespace heddle
