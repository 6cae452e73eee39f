#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/fusion.h"

namespace heddle {

// A scaled_dot_product_attention as a fusion holds it, which is as the ops it is made of:
// result = softmax(q k^T scale) v of half types, rounded once at the end.
struct Attention {
  std::vector<ExprId> exprs;  // all that computes nothing else, ascending; scalars not among them
  ValueId q = kNoValue;       // [batch..., tokens, width]
  ValueId k = kNoValue;
  ValueId v = kNoValue;
  ValueId result = kNoValue;
  bool causal = false;
  std::optional<double> scale;  // none: 1 / sqrt(width)
  // Why no library can be asked for it as one call; then of the others only `result` and `exprs`,
  // of which there may be fewer, mean something.
  std::string why_not;
};

// Every softmax that is multiplied by a matrix, in the order of the fusion. Taken for one library
// call are those of f16 or bf16 with at most two batch axes, without a mask but the causal one, of
// which no step is read elsewhere, and whose tokens and widths are not sharded.
std::vector<Attention> attentionsOf(const Fusion& fusion);

}  // namespace heddle
