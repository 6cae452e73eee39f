#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/graph/fusion.h"

namespace heddle {

// A scaled_dot_product_attention, or its backward, found in a fusion. The fusion contains the ops
// of which it consists. Operands and results are f16 or bf16. With p = softmax(q k^T scale):
//   forward:  o = p v
//   backward: dq = ds k scale, dk = ds^T q scale, dv = p^T g, where g is the gradient of o,
//             ds = p (dp - sum(p dp, keys)) and dp = g v^T
// All of it is computed in f32, and each result is rounded once at the end.
struct Attention {
  std::vector<ExprId> exprs;  // the expressions that it replaces, ascending; no scalars
  bool backward = false;
  ValueId q = kNoValue;  // [batch..., tokens, width]
  ValueId k = kNoValue;
  ValueId v = kNoValue;
  ValueId grad = kNoValue;       // backward only: g
  std::vector<ValueId> results;  // {o}, or {dq, dk, dv}
  bool causal = false;
  // The number of heads (axis -3) of q and the result is a multiple of that of k and v. Consecutive
  // heads of q share one head of k and v.
  bool gqa = false;
  std::optional<double> scale;  // nullopt: 1 / sqrt(width)
  // Why no library computes it as one call; empty: one may. If set, only `backward` and results[0]
  // are meaningful, and `exprs` may be incomplete.
  std::string why_not;

  // Returns the operands of the library call: q, k and v, preceded by g for a backward.
  std::vector<ValueId> operands() const {
    if (backward) return {grad, q, k, v};
    return {q, k, v};
  }
};

// Finds the attentions of a fusion and their backwards, in the order of the fusion: each softmax of
// ir/composite/attention.cpp that is multiplied by a matrix, or that is part of the gradient of
// such a matrix product. `why_not` is empty if all of this holds:
//  - Operands and results have the same type, f16 or bf16, and at most two axes before tokens
//    and width.
//  - There is no mask except the causal one, and the scale is a constant or 1 / sqrt(width).
//  - No axis is broadcast. Tokens and widths are not sharded; the other axes are sharded alike.
//  - No intermediate value is read elsewhere or is an output of the fusion.
//  - Backward: all three results are read, and heads are not shared.
std::vector<Attention> attentionsOf(const Fusion& fusion);

}  // namespace heddle
