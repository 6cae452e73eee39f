#include "ir/base/error.h"
#include "ir/segment/attention/attention_match.h"

namespace heddle {
namespace {

// Matches the backward of an attention. The match starts at the probabilities p and follows their
// readers to the gradients of v, q and k. g is the gradient of the result of the forward, and ^T
// swaps the last two axes. Here ds includes the factor scale; in ir/segment/attention/attention.h
// it does not.
//   dv = p^T g;  weighted = (g v^T) p;  ds = (weighted - p sum(weighted)) scale;
//   dq = ds k;   dk = ds^T q
class BackwardMatch : public AttentionMatch {
 public:
  using AttentionMatch::AttentionMatch;

  Attention run(ValueId probabilities, bool regrouped) {
    found_.backward = true;
    found_.results = {probabilities};
    found_.why_not = whyNot(probabilities, regrouped);
    finish();
    return std::move(found_);
  }

 private:
  std::string whyNot(ValueId p, bool regrouped) {
    const Expression* turned = reader(p, "permute", 0);
    const Expression* product =
        turned == nullptr ? nullptr : reader(turned->outputs[0], "matmul", 0);
    if (product == nullptr) return "the gradient of v is not read";
    found_.results = {product->outputs[0]};
    if (regrouped) return "heads of q share those of k";
    const ValueId dv = takeGradient(*product);
    if (dv == kNoValue) return not_half_;
    found_.results = {dv};
    take(turned->outputs[0], "permute");
    std::string why = takeProbabilities(p);
    if (!why.empty()) return why;
    const ValueId wide_grad = product->inputs[1];
    found_.grad = takeNarrow(wide_grad);
    if (found_.grad == kNoValue || !turnsLast(*turned)) return kOther;
    const ValueId ds = takeScoreGradient(p, wide_grad);
    if (ds == kNoValue) return why_no_ds_;
    why = takeProducts(ds);
    if (!why.empty()) return why;
    found_.results.push_back(dv);
    return whyNotIndexed();
  }

  // Takes a matrix product and the cast that rounds its result, and returns the rounded value. If
  // the result is not a rounded gradient, returns kNoValue and sets not_half_ to the reason.
  ValueId takeGradient(const Expression& product) {
    take(product.outputs[0], "matmul");
    const ValueId rounded = takeRounded(product);
    if (rounded != kNoValue && product.attrs.empty()) return rounded;
    not_half_ = reader(product.outputs[0], "sum", 0) != nullptr
                    ? "an operand is broadcast"
                    : notRounded(product, "its results are");
    return kNoValue;
  }

  // Takes the ops that compute ds, and returns ds. If the ops do not match, returns kNoValue and
  // sets why_no_ds_ to the reason.
  ValueId takeScoreGradient(ValueId p, ValueId wide_grad) {
    why_no_ds_ = "the gradients of q and k are not read";
    const Expression* raw = reader(wide_grad, "matmul", 0);
    if (raw == nullptr) return kNoValue;
    why_no_ds_ = kOther;
    const Expression* weighted = reader(raw->outputs[0], "mul", 0);
    if (weighted == nullptr || weighted->inputs[1] != p || !raw->attrs.empty()) return kNoValue;
    const Expression* turned = take(raw->inputs[1], "permute");
    const Expression* less = reader(weighted->outputs[0], "sub", 0);
    const Expression* scaled = less == nullptr ? nullptr : reader(less->outputs[0], "mul", 0);
    if (turned == nullptr || !turnsLast(*turned) || scaled == nullptr) return kNoValue;
    const Expression* share = take(less->inputs[1], "mul");
    const Expression* total = share == nullptr ? nullptr : take(share->inputs[1], "sum");
    const bool fits = total != nullptr && share->inputs[0] == p && isOverLast(*total) &&
                      total->inputs[0] == weighted->outputs[0] && isSameScale(scaled->inputs[1]);
    found_.v = takeNarrow(turned->inputs[0]);
    if (!fits || found_.v == kNoValue) return kNoValue;
    take(raw->outputs[0], "matmul");
    for (const Expression* each : {weighted, scaled}) take(each->outputs[0], "mul");
    take(less->outputs[0], "sub");
    return scaled->outputs[0];
  }

  std::string takeProducts(ValueId ds) {
    const Expression* of_q = reader(ds, "matmul", 0);
    const Expression* turned = reader(ds, "permute", 0);
    const Expression* of_k = turned == nullptr ? nullptr : reader(turned->outputs[0], "matmul", 0);
    if (of_q == nullptr) return "the gradient of q is not read";
    if (of_k == nullptr) return "the gradient of k is not read";
    if (of_q->inputs[1] != wide_k_ || of_k->inputs[1] != wide_q_ || !turnsLast(*turned)) {
      return kOther;
    }
    take(turned->outputs[0], "permute");
    const ValueId dq = takeGradient(*of_q);
    const ValueId dk = takeGradient(*of_k);
    if (dq == kNoValue || dk == kNoValue) return not_half_;
    found_.results = {dq, dk};
    return {};
  }

  std::string not_half_;
  std::string why_no_ds_;
};

}  // namespace

Attention backwardOf(const Fusion& fusion, const AttentionMatch::Readers& readers,
                     ValueId probabilities, bool regrouped) {
  return BackwardMatch(fusion, readers).run(probabilities, regrouped);
}

}  // namespace heddle
