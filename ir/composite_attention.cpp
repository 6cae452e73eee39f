// Rotary embedding and attention.
#include <cmath>
#include <limits>

#include "ir/composite.h"
#include "ir/composite_terms.h"
#include "ir/error.h"

namespace heddle {
namespace {

using composite::Result;
using composite::Term;

struct Halves {
  Term x;  // as given
  Term first;
  Term second;  // both wide
};

Halves halvesOf(FusionBuilder& b, ValueId x) {
  const Term value = composite::floatOperand(b, "rope", x);
  HEDDLE_USER_CHECK(value.rank() >= 2, "{}: {} needs two axes or more", b.where("rope"),
                    b.typeOf(x));
  const Size d = value.extent(value.rank() - 1);
  HEDDLE_USER_CHECK(!d.isConstant() || d.constant() % 2 == 0,
                    "{}: the last axis of {} has an odd extent", b.where("rope"), b.typeOf(x));
  const Size half = Size::floorDiv(d, 2);
  const Term first{&b, sliceAxis(b, x, -1, Size(0), half)};
  const Term second{&b, sliceAxis(b, x, -1, half, half + half)};
  return {value, composite::widen(first), composite::widen(second)};
}

ValueId rotated(FusionBuilder& b, const Halves& in, Term cos, Term sin) {
  Result result(b);
  const Term first = in.first * cos - in.second * sin;
  const Term second = in.second * cos + in.first * sin;
  const DType dtype = in.x.dtype();
  const ValueId low = composite::cast(first, dtype).id;
  return result(cat(b, {low, composite::cast(second, dtype).id}, -1));
}

Term transposed(Term a) { return {a.b, transpose(*a.b, a.id, -2, -1)}; }

Term product(Term a, Term c) { return {a.b, a.b->matmul(a.id, c.id)}; }

struct Scores {
  Term q, k, v;  // wide
  DType dtype;
  Term scale;          // f64 scalar
  Term probabilities;  // wide
};

// The query, or key, of an attention: [..., l, e].
Term attentionOperand(FusionBuilder& b, const char* op_name, ValueId id) {
  const Term term = composite::floatOperand(b, op_name, id);
  HEDDLE_USER_CHECK(term.rank() >= 2, "{}: {} needs two axes or more", b.where(op_name),
                    b.typeOf(id));
  return term;
}

void checkAttention(FusionBuilder& b, const char* op_name, ValueId q, ValueId k, ValueId v) {
  const Term query = attentionOperand(b, op_name, q);
  const Term key = attentionOperand(b, op_name, k);
  const Term value = attentionOperand(b, op_name, v);
  composite::sameType(b, op_name, query, key);
  composite::sameType(b, op_name, query, value);
  const size_t rank = query.rank();
  HEDDLE_USER_CHECK(key.rank() == rank && value.rank() == rank, "{}: {}, {} and {} differ in rank",
                    b.where(op_name), b.typeOf(q), b.typeOf(k), b.typeOf(v));
  for (size_t i = 0; i + 2 < rank; ++i) {
    b.agree(op_name, q, i, k, i);
    b.agree(op_name, q, i, v, i);
  }
  b.agree(op_name, q, rank - 1, k, rank - 1);
  b.agree(op_name, k, rank - 2, v, rank - 2);
}

Term scaleOf(Term q, const AttentionOptions& options) {
  FusionBuilder& b = *q.b;
  if (options.scale) return composite::constant(b, *options.scale);
  const Size e = q.extent(q.rank() - 1);
  if (e.isConstant()) {
    return composite::constant(b, 1.0 / std::sqrt(static_cast<double>(e.constant())));
  }
  const Term n{&b, b.sizeOf(q.id, -1)};
  return composite::rsqrt(composite::cast(n, DType::F64));
}

Term masked(FusionBuilder& b, const char* op_name, Term scores, ValueId mask, bool causal) {
  const Term never = composite::constant(b, -std::numeric_limits<double>::infinity());
  const auto rank = static_cast<int64_t>(scores.rank());
  if (causal) {
    const std::vector<Size> sizes = scores.tensor().sizes();
    const Term row = composite::positions(b, sizes, rank - 2);
    const Term column = composite::positions(b, sizes, rank - 1);
    scores = composite::where(composite::call("le", {column, row}), scores, never);
  }
  if (mask == kNoValue) return scores;
  const Term term{&b, mask};
  const TensorView tensor = b.tensorOf(op_name, mask);
  HEDDLE_USER_CHECK(tensor.dtype == DType::Bool || isFloat(tensor.dtype),
                    "{}: the mask {} must be bool or of a float type", b.where(op_name),
                    b.typeOf(mask));
  HEDDLE_USER_CHECK(tensor.rank() <= scores.rank(), "{}: the mask {} has more axes than the scores",
                    b.where(op_name), b.typeOf(mask));
  if (tensor.dtype == DType::Bool) return composite::where(term, scores, never);
  return scores + composite::cast(term, scores.dtype());
}

// The softmax of scores of which a whole row may be -inf: such a row is 0.
Term safeSoftmax(Term scores, bool rows_may_be_empty) {
  FusionBuilder& b = *scores.b;
  const Axes last = {static_cast<int64_t>(scores.rank()) - 1};
  const Term top = composite::max(scores, last);
  if (!rows_may_be_empty) {
    const Term e = composite::exp(scores - top);
    return e / composite::sum(e, last);
  }
  const Term never = composite::constant(b, -std::numeric_limits<double>::infinity());
  const Term empty = composite::call("eq", {top, never});
  const Term zero = composite::constant(b, 0.0);
  const Term e = composite::exp(scores - composite::where(empty, zero, top));
  return composite::where(empty, zero, e / composite::sum(e, last));
}

Scores scoresOf(FusionBuilder& b, const char* op_name, ValueId q, ValueId k, ValueId v,
                ValueId mask, const AttentionOptions& options) {
  checkAttention(b, op_name, q, k, v);
  const DType dtype = b.fusion().tensor(q).dtype;
  const Term query = composite::widen({&b, q});
  const Term key = composite::widen({&b, k});
  const Term value = composite::widen({&b, v});
  const Term scale = scaleOf(query, options);
  const Term raw = product(query, transposed(key)) * scale;
  const Term scores = masked(b, op_name, raw, mask, options.causal);
  return {query, key, value, dtype, scale, safeSoftmax(scores, mask != kNoValue)};
}

}  // namespace

ValueId rope(FusionBuilder& b, ValueId x, ValueId cos, ValueId sin) {
  Result result(b);
  const Halves in = halvesOf(b, x);
  auto angle = [&](ValueId id) {
    const Term term = composite::floatOperand(b, "rope", id);
    HEDDLE_USER_CHECK(term.rank() == 2, "{}: {} must be [t, d/2]", b.where("rope"), b.typeOf(id));
    b.agree("rope", in.x.id, in.x.rank() - 2, id, 0);
    b.agree("rope", in.first.id, in.x.rank() - 1, id, 1);
    return composite::cast(term, in.first.dtype());
  };
  const Term c = angle(cos);
  return result(rotated(b, in, c, angle(sin)));
}

ValueId rope(FusionBuilder& b, ValueId x, double base) {
  Result result(b);
  HEDDLE_USER_CHECK(base > 0, "{}: base is {}, expected more than 0", b.where("rope"), base);
  const Halves in = halvesOf(b, x);
  const std::vector<Size> sizes = {in.first.extent(in.x.rank() - 2),
                                   in.first.extent(in.x.rank() - 1)};
  const DType wide = in.first.dtype();
  const Term t = composite::cast(composite::positions(b, sizes, 0), wide);
  const Term i = composite::cast(composite::positions(b, sizes, 1), wide);
  const Term d = composite::cast({&b, b.sizeOf(x, -1)}, DType::F64);
  const Term exponent = i * (composite::constant(b, -2.0) / d);
  const Term frequency = composite::exp(exponent * std::log(base));
  const Term angle = t * frequency;
  const Term cos = composite::call("cos", angle);
  return result(rotated(b, in, cos, composite::call("sin", angle)));
}

ValueId attention(FusionBuilder& b, ValueId q, ValueId k, ValueId v, ValueId mask,
                  const AttentionOptions& options) {
  Result result(b);
  const Scores s = scoresOf(b, "scaled_dot_product_attention", q, k, v, mask, options);
  return result(product(s.probabilities, s.v), s.dtype);
}

AttentionGrads attentionBackward(FusionBuilder& b, ValueId dy, ValueId q, ValueId k, ValueId v,
                                 ValueId mask, const AttentionOptions& options) {
  Result result(b);
  const char* op_name = "scaled_dot_product_attention_backward";
  const Scores s = scoresOf(b, op_name, q, k, v, mask, options);
  const Term given = composite::floatOperand(b, op_name, dy);
  const size_t rank = s.q.rank();
  HEDDLE_USER_CHECK(given.dtype() == s.dtype && given.rank() == rank,
                    "{}: {} does not have the dtype and rank of {}", b.where(op_name), b.typeOf(dy),
                    b.typeOf(q));
  for (size_t i = 0; i + 1 < rank; ++i) b.agree(op_name, q, i, dy, i);
  b.agree(op_name, v, rank - 1, dy, rank - 1);
  const Term grad = composite::widen(given);
  const Term dv = product(transposed(s.probabilities), grad);
  const Term weighted = product(grad, transposed(s.v)) * s.probabilities;
  const Term total = composite::sum(weighted, {-1});
  const Term dscores = (weighted - s.probabilities * total) * s.scale;
  const ValueId dq = result(product(dscores, s.k), s.dtype);
  const ValueId dk = composite::cast(product(transposed(dscores), s.q), s.dtype).id;
  return {dq, dk, composite::cast(dv, s.dtype).id};
}

}  // namespace heddle
