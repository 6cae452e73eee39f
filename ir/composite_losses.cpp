// Losses and the gradients of what ends in one.
#include <cmath>

#include "ir/composite.h"
#include "ir/composite_norms.h"
#include "ir/error.h"

namespace heddle {
namespace {

using composite::Result;
using composite::Term;

// The operands of cross_entropy and what both directions make of them. Classes are told apart by
// comparing the target with the positions along the class axis: one pass over the logits, which may
// be sharded by classes.
struct Entropy {
  Term x;  // as given
  Term wide;
  Term ignored;   // bool, the shape of the target
  Term invalid;   // a class outside that is not ignored
  Term is_class;  // bool, the shape of x
  int64_t axis;   // of the classes
};

Entropy entropyOf(FusionBuilder& b, const char* op_name, ValueId logits, ValueId target,
                  const CrossEntropyOptions& options) {
  const Term x = composite::floatOperand(b, op_name, logits);
  HEDDLE_USER_CHECK(x.rank() >= 1, "{}: {} needs an axis of classes", b.where(op_name),
                    b.typeOf(logits));
  HEDDLE_USER_CHECK(options.label_smoothing >= 0 && options.label_smoothing <= 1,
                    "{}: label_smoothing is {}, expected 0 to 1", b.where(op_name),
                    options.label_smoothing);
  const int64_t axis = x.rank() == 1 ? 0 : 1;
  const Term classes = composite::indexOperand(b, op_name, target);
  const size_t target_rank = classes.rank();
  HEDDLE_USER_CHECK(target_rank + 1 == x.rank(),
                    "{}: the target {} must have the axes of {} less the classes", b.where(op_name),
                    b.typeOf(target), b.typeOf(logits));
  for (size_t i = 0; i < target_rank; ++i) {
    b.agree(op_name, logits, i + (static_cast<int64_t>(i) >= axis ? 1 : 0), target, i);
  }
  const Term ignored =
      composite::call("eq", {classes, composite::constant(b, options.ignore_index)});
  const Term low = composite::call("lt", {classes, composite::constant(b, int64_t{0})});
  const Term high = composite::call("ge", {classes, composite::count(x, {axis})});
  const Term outside = composite::call("logical_or", {low, high});
  const Term invalid =
      composite::call("logical_and", {outside, composite::call("logical_not", ignored)});
  const Term place = composite::positions(b, x.tensor().sizes(), axis);
  const Term is_class = composite::call("eq", {composite::broadcast(classes, {axis}), place});
  return {x, composite::widen(x), ignored, invalid, is_class, axis};
}

Term zero(FusionBuilder& b) { return composite::constant(b, 0.0); }

// How many targets are not ignored, in the type the loss is computed in.
Term counted(const Entropy& e) {
  const Term takes_part = composite::call("logical_not", e.ignored);
  const Term n = composite::sum(takes_part, rowMajor(takes_part.rank()), false);
  return composite::cast(n, e.wide.dtype());
}

Term reduced(Term loss, LossReduction reduction) {
  const Axes every = rowMajor(loss.rank());
  if (reduction == LossReduction::None) return loss;
  if (reduction == LossReduction::Sum) return composite::sum(loss, every, false);
  return composite::mean(loss, every, false);
}

}  // namespace

ValueId crossEntropy(FusionBuilder& b, ValueId x, ValueId target,
                     const CrossEntropyOptions& options) {
  Result result(b);
  const Entropy e = entropyOf(b, "cross_entropy", x, target, options);
  const Term logs = composite::logProbabilities(e.wide, {e.axis});
  const Term picked = composite::where(e.is_class, logs, zero(b));
  Term loss = 0.0 - composite::sum(picked, {e.axis}, false);
  if (options.label_smoothing > 0) {
    const Term smooth = 0.0 - composite::mean(logs, {e.axis}, false);
    loss = loss * (1 - options.label_smoothing) + smooth * options.label_smoothing;
  }
  loss = composite::where(e.invalid, composite::constant(b, std::nan("")), loss);
  loss = composite::where(e.ignored, zero(b), loss);
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
  Term grad = composite::floatOperand(b, op_name, dloss);
  composite::sameType(b, op_name, grad, e.x);
  if (options.reduction == LossReduction::None) {
    composite::sameShape(b, op_name, grad, e.ignored);
  } else {
    HEDDLE_USER_CHECK(grad.rank() == 0, "{}: {} must have no axes, as the loss", b.where(op_name),
                      b.typeOf(dloss));
  }
  grad = composite::widen(grad);
  if (options.reduction == LossReduction::Mean) grad = grad / counted(e);
  grad = composite::where(e.invalid, composite::constant(b, std::nan("")), grad);
  grad = composite::broadcast(composite::where(e.ignored, zero(b), grad), {e.axis});

  const Term p = composite::exp(composite::logProbabilities(e.wide, {e.axis}));
  Term wanted = composite::cast(e.is_class, e.wide.dtype());
  if (options.label_smoothing > 0) {
    const Term share =
        composite::constant(b, options.label_smoothing) / composite::count(e.x, {e.axis});
    wanted = wanted * (1 - options.label_smoothing) + share;
  }
  return result((p - wanted) * grad, e.x.dtype());
}

ValueId mseLoss(FusionBuilder& b, ValueId x, ValueId target, LossReduction reduction) {
  Result result(b);
  const Term value = composite::floatOperand(b, "mse_loss", x);
  const Term wanted = composite::floatOperand(b, "mse_loss", target);
  composite::sameType(b, "mse_loss", value, wanted);
  composite::sameShape(b, "mse_loss", value, wanted);
  const Term difference = composite::widen(value) - composite::widen(wanted);
  return result(reduced(difference * difference, reduction), value.dtype());
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
    const Term padding = composite::call("eq", {rows, composite::constant(b, *padding_idx)});
    rows = composite::where(padding, composite::constant(b, int64_t{-1}), rows);
  }
  const Size d = grad.extent(grad.rank() - 1);
  const Size n = product(rows.tensor().sizes());
  const ValueId places = b.reshape(rows.id, {n, Size(1)});
  const ValueId source = b.reshape(dy, {n, d});
  const ValueId none = b.full(zero(b).id, {num_embeddings, d}, grad.dtype());
  return result(b.scatterAdd(none, places, source, 0));
}

}  // namespace heddle
