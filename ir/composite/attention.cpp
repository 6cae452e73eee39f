// Rotary embedding and attention.
#include <cmath>
#include <limits>

#include "ir/base/check.h"
#include "ir/composite/composite.h"
#include "ir/composite/terms.h"

namespace heddle {
namespace {

using composite::Result;
using composite::Term;

struct Halves {
  Term x;       // the operand
  Term first;   // first half of the last axis, widened (ir/composite/terms.h)
  Term second;  // second half, widened
};

Halves halvesOf(FusionBuilder& b, ValueId x) {
  const Term value = composite::floatOperand(b, "rope", x);
  HEDDLE_USER_CHECK(value.rank() >= 2, "{}: {} needs two axes or more", b.where("rope"),
                    b.typeOf(x));
  const Size d = value.extent(value.rank() - 1);
  composite::guardEven(b, "rope", d, static_cast<int64_t>(value.rank()) - 1, x);
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

// Describes how heads of q share heads of k and v (AttentionOptions::gqa).
struct Heads {
  bool shared = false;
  Size of_q, of_k;
  Size group;  // heads of q that share one head of k: of_q / of_k
  Size rows;   // rows of one head of q, that is, the number of queries l
};

struct Scores {
  Term q, k, v;  // widened operands; q as rowsOfHeads() returns it
  DType dtype;
  Term scale;          // f64 scalar
  Term probabilities;  // widened, [..., l, s]
  Heads heads;
};

// Checks that an operand of an attention is a float tensor with at least two axes.
Term attentionOperand(FusionBuilder& b, const char* op_name, ValueId id) {
  const Term term = composite::floatOperand(b, op_name, id);
  HEDDLE_USER_CHECK(term.rank() >= 2, "{}: {} needs two axes or more", b.where(op_name),
                    b.typeOf(id));
  return term;
}

Heads sharedHeads(FusionBuilder& b, const char* op_name, Term q, Term k, Term v) {
  for (const Term& each : {q, k, v}) {
    HEDDLE_USER_CHECK(each.rank() >= 3, "{}: gqa needs an axis of heads, {} has none",
                      b.where(op_name), b.typeOf(each.id));
  }
  b.agree(op_name, k.id, k.rank() - 3, v.id, v.rank() - 3);
  const Size of_q = q.extent(q.rank() - 3);
  const Size of_k = k.extent(k.rank() - 3);
  const bool known = of_q.isConstant() && of_k.isConstant();
  HEDDLE_USER_CHECK(!known || (of_k.constant() > 0 && of_q.constant() % of_k.constant() == 0),
                    "{}: the {} heads of {} are no multiple of the {} of {}", b.where(op_name),
                    of_q.str(), b.typeOf(q.id), of_k.str(), b.typeOf(k.id));
  const Size group = Size::floorDiv(of_q, of_k);
  if (!known) {
    b.mutableFusion().guards.push_back(
        {of_q, of_k * group,
         fmt::format("the heads of {} as a multiple of those of {}, operands of {}", b.typeOf(q.id),
                     b.typeOf(k.id), b.where(op_name))});
  }
  return {true, of_q, of_k, group, q.extent(q.rank() - 2)};
}

// Returns whether the axis has the extent 1, or may have it in a run.
bool mayStretch(const IterDomain& axis) {
  return axis.extent.isConstant(1) || axis.kind == IterKind::Symbolic;
}

// Checks dtypes and extents of the operands. The extents of a leading axis must be equal or 1. With
// gqa, sharedHeads() checks the extents of the heads axis instead.
void checkAttention(FusionBuilder& b, const char* op_name, Term q, Term k, Term v, bool gqa) {
  composite::sameType(b, op_name, q, k);
  composite::sameType(b, op_name, q, v);
  auto meet = [&](Term x, Term y) {
    for (size_t i = gqa ? 4 : 3; i <= std::min(x.rank(), y.rank()); ++i) {
      const size_t of_x = x.rank() - i;
      const size_t of_y = y.rank() - i;
      if (mayStretch(x.tensor().domain[of_x]) || mayStretch(y.tensor().domain[of_y])) continue;
      b.agree(op_name, x.id, of_x, y.id, of_y);
    }
  };
  meet(q, k);
  meet(q, v);
  meet(k, v);
  b.agree(op_name, q.id, q.rank() - 1, k.id, k.rank() - 1);
  b.agree(op_name, k.id, k.rank() - 2, v.id, v.rank() - 2);
}

Term regrouped(Term x, const Size& heads, const Size& rows) {
  std::vector<Size> sizes = x.tensor().sizes();
  sizes[sizes.size() - 3] = heads;
  sizes[sizes.size() - 2] = rows;
  return {x.b, x.b->reshape(x.id, sizes)};
}

// With gqa, reshapes [..., of_q, l, e] to [..., of_k, group * l, e]. The rows of all heads of q
// that share a head of k are then consecutive. The matrix products therefore need no copies of k
// and v.
Term rowsOfHeads(Term x, const Heads& heads) {
  return heads.shared ? regrouped(x, heads.of_k, heads.group * heads.rows) : x;
}

// Reverses the reshape of rowsOfHeads().
Term headsOfRows(Term x, const Heads& heads) {
  return heads.shared ? regrouped(x, heads.of_q, heads.rows) : x;
}

// Throws UserError if only the run decides whether an axis of an operand has extent 1 and is
// broadcast to `wanted` elements. Its gradient would need a sum only in some runs.
void requireKnownBroadcast(FusionBuilder& b, const char* op_name, ValueId id,
                           const IterDomain& axis, const Size& wanted) {
  const std::string size = axis.extent.str();
  HEDDLE_USER_CHECK(
      axis.kind != IterKind::Symbolic || axis.extent == wanted,
      "{}: the size {}? of {} may be 1, but the gradient has {}; declare {} without ?",
      b.where(op_name), size, b.typeOf(id), wanted.str(), size);
}

// Reduces the gradient of the operand `id` to the type of this operand, or to a reshape of it. Sums
// over the axes that the operand lacks, and over the axes along which the operand has extent 1.
// `rigid` is the number of last axes that no other operand stretches.
Term summedTo(Term grad, const TensorView& type, size_t rigid, const char* op_name, ValueId id) {
  const size_t added = grad.rank() - type.rank();
  const Axes leading = rowMajor(added);
  Axes stretched;
  for (size_t i = 0; i < type.rank(); ++i) {
    const IterDomain& own = type.domain[i];
    const Size wanted = grad.extent(added + i);
    if (i + rigid < type.rank()) requireKnownBroadcast(*grad.b, op_name, id, own, wanted);
    if (own.extent.isConstant(1) && !wanted.isConstant(1)) {
      stretched.push_back(static_cast<int64_t>(i));
    }
  }
  if (!leading.empty()) grad = composite::sum(grad, leading, false);
  return stretched.empty() ? grad : composite::sum(grad, stretched);
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

// Computes the softmax of scores. If all scores of a row are -inf, because of a mask or an
// overflow, the result of the row is 0.
Term safeSoftmax(Term scores) {
  FusionBuilder& b = *scores.b;
  const Axes last = {static_cast<int64_t>(scores.rank()) - 1};
  const Term top = composite::max(scores, last);
  const Term never = composite::constant(b, -std::numeric_limits<double>::infinity());
  const Term empty = composite::call("eq", {top, never});
  const Term zero = composite::constant(b, 0.0);
  const Term e = composite::exp(scores - composite::where(empty, zero, top));
  return composite::where(empty, zero, e / composite::sum(e, last));
}

Scores scoresOf(FusionBuilder& b, const char* op_name, ValueId q, ValueId k, ValueId v,
                ValueId mask, const AttentionOptions& options) {
  const Term query = attentionOperand(b, op_name, q);
  const Term key = attentionOperand(b, op_name, k);
  const Term value = attentionOperand(b, op_name, v);
  checkAttention(b, op_name, query, key, value, options.gqa);
  Heads heads;
  if (options.gqa) heads = sharedHeads(b, op_name, query, key, value);
  Scores s{composite::widen(query),
           composite::widen(key),
           composite::widen(value),
           query.dtype(),
           scaleOf(query, options),
           {},
           heads};
  s.q = rowsOfHeads(s.q, heads);
  const Term raw = headsOfRows(product(s.q, transposed(s.k)) * s.scale, heads);
  const Term scores = masked(b, op_name, raw, mask, options.causal);
  s.probabilities = safeSoftmax(scores);
  return s;
}

// Checks that dy has the shape of the result: the broadcast leading axes of the scores and of v,
// followed by l and d.
void checkAttentionGrad(FusionBuilder& b, const char* op_name, Term dy, const Scores& s,
                        ValueId q) {
  const size_t rank = std::max(s.probabilities.rank(), s.v.rank());
  HEDDLE_USER_CHECK(dy.dtype() == s.dtype && dy.rank() == rank,
                    "{}: {} does not have the dtype and rank of {}", b.where(op_name),
                    b.typeOf(dy.id), b.typeOf(q));
  for (size_t i = 2; i <= rank; ++i) {
    const Term& scores = s.probabilities;
    const bool of_v =
        i > 2 &&
        (i > scores.rank() || (scores.extent(scores.rank() - i).isConstant(1) && i <= s.v.rank()));
    const Term& from = of_v ? s.v : scores;
    b.agree(op_name, from.id, from.rank() - i, dy.id, rank - i);
  }
  b.agree(op_name, s.v.id, s.v.rank() - 1, dy.id, rank - 1);
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
  const Term rows = product(rowsOfHeads(s.probabilities, s.heads), s.v);
  return result(headsOfRows(rows, s.heads), s.dtype);
}

AttentionGrads attentionBackward(FusionBuilder& b, ValueId dy, ValueId q, ValueId k, ValueId v,
                                 ValueId mask, const AttentionOptions& options) {
  Result result(b);
  const char* op_name = "scaled_dot_product_attention_backward";
  const Scores s = scoresOf(b, op_name, q, k, v, mask, options);
  const Term given = composite::floatOperand(b, op_name, dy);
  const TensorView type_q = b.fusion().tensor(q);
  checkAttentionGrad(b, op_name, given, s, q);
  const Term grad = rowsOfHeads(composite::widen(given), s.heads);
  const Term probabilities = rowsOfHeads(s.probabilities, s.heads);
  const Term dv = product(transposed(probabilities), grad);
  const Term weighted = product(grad, transposed(s.v)) * probabilities;
  const Term total = composite::sum(weighted, {-1});
  const Term dscores = (weighted - probabilities * total) * s.scale;
  const Term dq = headsOfRows(product(dscores, s.k), s.heads);
  const Term dk = product(transposed(dscores), s.q);
  // A mask may stretch the rows of q. Nothing stretches the last axes otherwise, or heads that k
  // and v share.
  const IterDomain& rows = type_q.domain[type_q.rank() - 2];
  requireKnownBroadcast(b, op_name, q, rows, s.probabilities.extent(s.probabilities.rank() - 2));
  const size_t rigid = s.heads.shared ? 3 : 2;
  const auto summed = [&](Term term, const TensorView& type, ValueId id) {
    return composite::cast(summedTo(term, type, rigid, op_name, id), s.dtype).id;
  };
  const ValueId of_q = result(summedTo(dq, type_q, rigid, op_name, q), s.dtype);
  const ValueId of_k = summed(dk, s.k.tensor(), k);
  return {of_q, of_k, summed(dv, s.v.tensor(), v)};
}

}  // namespace heddle
