// The losses cross_entropy and mse_loss, and the gradients of cross_entropy and embedding.
#include <cmath>

#include "ir/base/check.h"
#include "ir/composite/composite.h"
#include "ir/composite/norms.h"

namespace heddle {
namespace {

using composite::Result;
using composite::Term;

// The operands of cross_entropy, and terms that the loss and its gradient share. `is_class`
// compares the target with the index along the class axis. For the loss, it selects the logarithm
// of the target class's probability. To select with take_along_axis, all logarithms would have to
// be in memory (rule 6 of ir/analysis/kernel_rules.h). The comparison also works if the class axis
// is sharded.
struct Entropy {
  Term x;                 // the logits
  Term wide;              // the logits, widened (ir/composite/terms.h)
  Term target;            // class indices, or widened probabilities in the shape of x
  bool probable = false;  // true: the target contains probabilities; false: class indices
  // Only for class indices, in the shape of the target: whether the class equals ignore_index, and
  // whether it is out of range and not ignored.
  Term ignored, invalid;
  Term is_class;  // only for class indices, in the shape of x: true for logits of target classes
  // The weights of the classes, widened, with broadcast axes for all other axes of x. If there are
  // no weights, the id is kNoValue.
  Term weight;
  int64_t axis = 0;  // the axis of the classes
};

bool isWeighted(const Entropy& e) { return e.weight.id != kNoValue; }

Term classWeight(FusionBuilder& b, const char* op_name, const Entropy& e, ValueId weight) {
  HEDDLE_USER_CHECK(b.tensorOf(op_name, weight).rank() == 1,
                    "{}: the weight {} must have one axis, the classes", b.where(op_name),
                    b.typeOf(weight));
  const Term term = composite::parameterOf(b, op_name, e.x, weight, e.axis);
  Axes others = rowMajor(e.x.rank());
  others.erase(others.begin() + e.axis);
  return composite::broadcast(composite::widen(term), others);
}

void takeProbabilities(Entropy& e, const char* op_name, const CrossEntropyOptions& options) {
  FusionBuilder& b = *e.x.b;
  composite::sameType(b, op_name, e.x, e.target);
  composite::sameShape(b, op_name, e.x, e.target);
  HEDDLE_USER_CHECK(options.ignore_index < 0,
                    "{}: ignore_index is {}, but the target {} holds probabilities",
                    b.where(op_name), options.ignore_index, b.typeOf(e.target.id));
  e.target = composite::widen(e.target);
}

void takeClasses(Entropy& e, const char* op_name, const CrossEntropyOptions& options) {
  FusionBuilder& b = *e.x.b;
  const ValueId target = e.target.id;
  const Term classes = composite::indexOperand(b, op_name, target);
  const size_t target_rank = classes.rank();
  HEDDLE_USER_CHECK(target_rank + 1 == e.x.rank(),
                    "{}: the target {} must have the axes of {} except the classes",
                    b.where(op_name), b.typeOf(target), b.typeOf(e.x.id));
  for (size_t i = 0; i < target_rank; ++i) {
    b.agree(op_name, e.x.id, i + (static_cast<int64_t>(i) >= e.axis ? 1 : 0), target, i);
  }
  e.ignored = composite::call("eq", {classes, composite::constant(b, options.ignore_index)});
  const Term low = composite::call("lt", {classes, composite::constant(b, int64_t{0})});
  const Term high = composite::call("ge", {classes, composite::count(e.x, {e.axis})});
  const Term outside = composite::call("logical_or", {low, high});
  e.invalid = composite::call("logical_and", {outside, composite::call("logical_not", e.ignored)});
  const Term position = composite::positions(b, e.x.tensor().sizes(), e.axis);
  e.is_class = composite::call("eq", {composite::broadcast(classes, {e.axis}), position});
}

Entropy entropyOf(FusionBuilder& b, const char* op_name, ValueId logits, ValueId target,
                  const CrossEntropyOptions& options) {
  Entropy e;
  e.x = composite::floatOperand(b, op_name, logits);
  HEDDLE_USER_CHECK(e.x.rank() >= 1, "{}: {} needs an axis of classes", b.where(op_name),
                    b.typeOf(logits));
  HEDDLE_USER_CHECK(options.label_smoothing >= 0 && options.label_smoothing <= 1,
                    "{}: label_smoothing is {}, expected 0 to 1", b.where(op_name),
                    options.label_smoothing);
  e.axis = e.x.rank() == 1 ? 0 : 1;
  e.probable = isFloat(b.tensorOf(op_name, target).dtype);
  if (e.probable) composite::floatOperand(b, op_name, target);
  e.target = {&b, target};
  if (e.probable) {
    takeProbabilities(e, op_name, options);
  } else {
    takeClasses(e, op_name, options);
  }
  e.wide = composite::widen(e.x);
  if (options.weight != kNoValue) e.weight = classWeight(b, op_name, e, options.weight);
  return e;
}

Term zero(FusionBuilder& b) { return composite::constant(b, 0.0); }

// Returns the divisor of the mean loss, in the type in which the loss is computed:
//  - class indices: the number of targets that are not ignored, or with class weights the sum of
//    the weights of these targets
//  - probabilities: the number of targets
Term counted(const Entropy& e) {
  if (e.probable) {
    Axes others = rowMajor(e.x.rank());
    others.erase(others.begin() + e.axis);
    return composite::cast({e.x.b, e.x.b->full(composite::count(e.x, others).id, {}, DType::I64)},
                           e.wide.dtype());
  }
  Term takes_part = composite::call("logical_not", e.ignored);
  if (isWeighted(e)) {
    const Term mine = composite::where(e.is_class, e.weight, zero(*e.x.b));
    takes_part = composite::where(takes_part, composite::sum(mine, {e.axis}, false), zero(*e.x.b));
  }
  const Term n = composite::sum(takes_part, rowMajor(takes_part.rank()), false);
  return composite::cast(n, e.wide.dtype());
}

Term reduced(Term loss, LossReduction reduction) {
  const Axes every = rowMajor(loss.rank());
  if (reduction == LossReduction::None) return loss;
  if (reduction == LossReduction::Sum) return composite::sum(loss, every, false);
  return composite::mean(loss, every, false);
}

Term smoothed(const Entropy& e, Term wanted, double smoothing) {
  if (smoothing == 0) return wanted;
  const Term share = composite::constant(*e.x.b, smoothing) / composite::count(e.x, {e.axis});
  return wanted * (1 - smoothing) + share;
}

// Returns the loss of each target.
Term lossesOf(const Entropy& e, const CrossEntropyOptions& options) {
  FusionBuilder& b = *e.x.b;
  Term logs = composite::logProbabilities(e.wide, {e.axis});
  if (isWeighted(e)) logs = logs * e.weight;
  if (e.probable) {
    const Term wanted = smoothed(e, e.target, options.label_smoothing);
    return 0.0 - composite::sum(logs * wanted, {e.axis}, false);
  }
  const Term picked = composite::where(e.is_class, logs, zero(b));
  Term loss = 0.0 - composite::sum(picked, {e.axis}, false);
  if (options.label_smoothing > 0) {
    const Term smooth = 0.0 - composite::mean(logs, {e.axis}, false);
    loss = loss * (1 - options.label_smoothing) + smooth * options.label_smoothing;
  }
  loss = composite::where(e.invalid, composite::constant(b, std::nan("")), loss);
  return composite::where(e.ignored, zero(b), loss);
}

// Returns the gradient with respect to the loss of each target. It follows from `dloss`, the
// gradient with respect to the reduced loss. The returned term has an axis of extent 1 in place of
// the classes. If the gradient is the same for all targets, the term may instead have no axes. For
// class indices, the gradient is 0 if the target is ignored, and NaN if its class is out of range.
Term lossGrads(FusionBuilder& b, const char* op_name, const Entropy& e, ValueId dloss,
               const CrossEntropyOptions& options) {
  Term grad = composite::floatOperand(b, op_name, dloss);
  composite::sameType(b, op_name, grad, e.x);
  if (options.reduction == LossReduction::None) {
    HEDDLE_USER_CHECK(grad.rank() + 1 == e.x.rank(),
                      "{}: {} must have the axes of {} except the classes", b.where(op_name),
                      b.typeOf(dloss), b.typeOf(e.x.id));
    for (size_t i = 0; i < grad.rank(); ++i) {
      b.agree(op_name, dloss, i, e.x.id, i + (static_cast<int64_t>(i) >= e.axis ? 1 : 0));
    }
  } else {
    HEDDLE_USER_CHECK(grad.rank() == 0, "{}: {} must have no axes, like the loss", b.where(op_name),
                      b.typeOf(dloss));
  }
  grad = composite::widen(grad);
  if (options.reduction == LossReduction::Mean) grad = grad / counted(e);
  if (!e.probable) {
    grad = composite::where(e.invalid, composite::constant(b, std::nan("")), grad);
    grad = composite::where(e.ignored, zero(b), grad);
  }
  return grad.rank() == 0 && e.x.rank() > 1 ? grad : composite::broadcast(grad, {e.axis});
}

// Returns padding_idx as a row index from 0. A negative padding_idx counts from the end. If the
// number of rows is symbolic, a negative padding_idx throws UserError, and one beyond the last row
// is accepted. The latter has no effect, because no valid index equals it.
int64_t paddingRow(FusionBuilder& b, const Size& rows, int64_t index) {
  const std::string where = b.where("embedding_backward");
  if (!rows.isConstant()) {
    HEDDLE_USER_CHECK(index >= 0, "{}: padding_idx is {}, expected 0 or more of {} rows", where,
                      index, rows.str());
    return index;
  }
  const int64_t n = rows.constant();
  HEDDLE_USER_CHECK(index >= -n && index < n, "{}: padding_idx is {}, expected {} to below {}",
                    where, index, -n, n);
  return index < 0 ? index + n : index;
}

}  // namespace

ValueId crossEntropy(FusionBuilder& b, ValueId x, ValueId target,
                     const CrossEntropyOptions& options) {
  Result result(b);
  const Entropy e = entropyOf(b, "cross_entropy", x, target, options);
  const Term loss = lossesOf(e, options);
  if (options.reduction != LossReduction::Mean) {
    return result(reduced(loss, options.reduction), e.x.dtype());
  }
  return result(reduced(loss, LossReduction::Sum) / counted(e), e.x.dtype());
}

ValueId crossEntropyBackward(FusionBuilder& b, ValueId dloss, ValueId x, ValueId target,
                             const CrossEntropyOptions& options) {
  Result result(b);
  const char* op_name = "cross_entropy_backward";
  const Entropy e = entropyOf(b, op_name, x, target, options);
  const Term grad = lossGrads(b, op_name, e, dloss, options);
  Term p = composite::exp(composite::logProbabilities(e.wide, {e.axis}));
  Term wanted = e.probable ? e.target : composite::cast(e.is_class, e.wide.dtype());
  wanted = smoothed(e, wanted, options.label_smoothing);
  if (isWeighted(e)) wanted = wanted * e.weight;
  // For a valid class index without weights, the sum of `wanted` over the classes is 1. In this
  // case the multiplication by the sum is omitted. For other class indices (ignored or out of
  // range), `grad` is 0 or NaN, so the factor does not matter.
  if (isWeighted(e) || e.probable) p = p * composite::sum(wanted, {e.axis});
  return result((p - wanted) * grad, e.x.dtype());
}

ValueId mseLoss(FusionBuilder& b, ValueId x, ValueId target, LossReduction reduction) {
  Result result(b);
  const Term value = composite::floatOperand(b, "mse_loss", x);
  const Term wanted = composite::floatOperand(b, "mse_loss", target);
  composite::broadcastable(b, "mse_loss", value, wanted);
  const OperandType types[] = {{value.dtype(), kindOf(b.fusion().value(x))},
                               {wanted.dtype(), kindOf(b.fusion().value(target))}};
  const DType dtype = promoteOperands(types);
  const Term difference = composite::widen(value) - composite::widen(wanted);
  return result(reduced(difference * difference, reduction), dtype);
}

ValueId embeddingBackward(FusionBuilder& b, ValueId dy, ValueId index, const Size& num_embeddings,
                          std::optional<int64_t> padding_idx) {
  Result result(b);
  const char* op_name = "embedding_backward";
  const Term grad = composite::floatOperand(b, op_name, dy);
  Term rows = composite::indexOperand(b, op_name, index);
  HEDDLE_USER_CHECK(grad.rank() == rows.rank() + 1, "{}: {} must have the axes of {} and one more",
                    b.where(op_name), b.typeOf(dy), b.typeOf(index));
  for (size_t i = 0; i < rows.rank(); ++i) b.agree(op_name, dy, i, index, i);
  if (padding_idx) {
    const int64_t row = paddingRow(b, num_embeddings, *padding_idx);
    const Term padding = composite::call("eq", {rows, composite::constant(b, row)});
    rows = composite::where(padding, composite::constant(b, int64_t{-1}), rows);
  }
  const Size d = grad.extent(grad.rank() - 1);
  const Size n = product(rows.tensor().sizes());
  const ValueId indices = b.reshape(rows.id, {n, Size(1)});
  const ValueId source = b.reshape(dy, {n, d});
  const ValueId none = b.full(zero(b).id, {num_embeddings, d}, grad.dtype());
  return result(b.scatterAdd(none, indices, source, 0, true));
}

}  // namespace heddle
