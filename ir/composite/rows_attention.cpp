#include "ir/base/check.h"
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
     "rotary position embedding, rotate-half convention: x[..., t, d] with base, or (x, cos, sin) "
     "with tables [t, d / 2]",
     1, 2, kRope, ropeRow},
    {"scaled_dot_product_attention",
     "softmax(q k^T scale + mask) v: (q, k, v[, mask]); leading axes are broadcast. With gqa, k "
     "and v have the same number of heads, and the number of heads of q is a multiple of it. "
     "causal and mask may be combined. "
     "The mask is bool or of any float type. A query that sees no key gives 0. Without scale, "
     "heads of size 0 give NaN. On CUDA, cuDNN computes it for f16 and bf16 if it can; the "
     "segments "
     "dump gives the reason if it cannot. cuDNN also rounds the probabilities to the half type. "
     "host/device/attention.h has a bound of the error",
     3, 1, kAttention,
     [](B b, V v, A a) {
       return Operands{attention(b, v[0], v[1], v[2], at(v, 3), attentionOptions(a))};
     }},
    {"scaled_dot_product_attention_backward",
     "gradients of q, k and v, three results: (dy, q, k, v[, mask]). If cuDNN computes it on CUDA, "
     "the result of the forward, the probabilities and the gradient of the scores are also rounded "
     "to the half type, within the bounds in host/device/attention.h",
     4, 1, kAttention, attentionBackwardRow},
};

}  // namespace

std::span<const CompositeDef> attentions() { return kAttentions; }

}  // namespace heddle::composite_rows
