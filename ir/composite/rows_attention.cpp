#include "ir/composite/rows.h"

namespace heddle::composite_rows {
namespace {

constexpr AttrSpec kRope[] = {{"base", AttrType::Float, false}};
constexpr AttrSpec kAttention[] = {{"causal", AttrType::Bool, false},
                                   {"scale", AttrType::Float, false},
                                   {"gqa", AttrType::Bool, false}};

AttentionOptions attentionOptions(A a) {
  return {get(a, "causal", false), maybe<double>(a, "scale"), get(a, "gqa", false)};
}

Operands ropeRow(B b, V v, A a) {
  const std::optional<double> base = maybe<double>(a, "base");
  if (v.size() == 1) return {rope(b, v[0], base.value_or(10000))};
  HEDDLE_USER_CHECK(v.size() == 3 && !base, "{}: takes (x) with base, or (x, cos, sin)",
                    b.where("rope"));
  return {rope(b, v[0], v[1], v[2])};
}

Operands attentionBackwardRow(B b, V v, A a) {
  const AttentionGrads r =
      attentionBackward(b, v[0], v[1], v[2], v[3], at(v, 4), attentionOptions(a));
  return {r.q, r.k, r.v};
}

const CompositeDef kAttentions[] = {
    {"rope",
     "rotary position embedding, rotate-half: x[..., t, d] with base, or (x, cos, sin) with tables "
     "[t, d / 2]",
     1, 2, kRope, ropeRow},
    {"scaled_dot_product_attention",
     "softmax(q k^T scale + mask) v: (q, k, v[, mask]), leading axes broadcast; gqa: the heads of "
     "q are a multiple of those of k and v, which are equal; causal beside a mask is taken too, a "
     "mask of any float type; a "
     "query that sees no key gives 0; without scale, heads of size 0 give NaN; on CUDA where cuDNN "
     "fits (f16, bf16; the segments dump says where not), the probabilities are rounded to the "
     "half type too, within the bound of host/device/attention.h",
     3, 1, kAttention,
     [](B b, V v, A a) {
       return Operands{attention(b, v[0], v[1], v[2], at(v, 3), attentionOptions(a))};
     }},
    {"scaled_dot_product_attention_backward",
     "(dy, q, k, v[, mask]): gradients of q, k and v; on CUDA where cuDNN fits, the result, the "
     "probabilities and the gradient of the scores are rounded to the half type too, within the "
     "bounds of host/device/attention.h",
     4, 1, kAttention, attentionBackwardRow},
};

}  // namespace

std::span<const CompositeDef> attentions() { return kAttentions; }

}  // namespace heddle::composite_rows
