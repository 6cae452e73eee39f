#include "ir/segment/attention/attention.h"

#include "ir/analysis/kernel_rules.h"
#include "ir/base/error.h"
#include "ir/segment/attention/attention_match.h"

namespace heddle {
namespace {

class ForwardMatch : public AttentionMatch {
 public:
  using AttentionMatch::AttentionMatch;

  // Matches a forward attention. `product` is the matrix product whose first operand is
  // `probabilities` or, if `regrouped` is true, a reshape of it.
  Attention run(ValueId probabilities, bool regrouped, ExprId product) {
    found_.gqa = regrouped;
    found_.results = {fusion_.expr(product).outputs[0]};
    found_.why_not = whyNot(probabilities, fusion_.expr(product));
    finish();
    return std::move(found_);
  }

 private:
  std::string whyNot(ValueId probabilities, const Expression& product) {
    const Expression* heads = found_.gqa ? reader(product.outputs[0], "reshape", 0) : &product;
    if (heads == nullptr) return kOther;
    const ValueId result = takeRounded(*heads);
    if (result == kNoValue) {
      return notRounded(product, "its result is");
    }
    found_.results = {result};
    take(product.outputs[0], "matmul");
    if (found_.gqa) {
      takeRegrouped(heads->outputs[0], false);
      takeRegrouped(product.inputs[0], true);
    }
    std::string why = takeProbabilities(probabilities);
    if (!why.empty()) return why;
    found_.v = takeNarrow(product.inputs[1]);
    if (found_.v == kNoValue || !product.attrs.empty()) return kOther;
    return whyNotIndexed();
  }
};

// Adds the attentions that read a softmax, directly or through one reshape (grouped-query
// attention). If ops of a backward read the softmax, also adds the backward.
void addAttentions(const Fusion& fusion, const AttentionMatch::Readers& readers, ValueId softmax,
                   ValueId probabilities, std::vector<Attention>& found) {
  const bool regrouped = softmax != probabilities;
  bool backward = false;
  for (ExprId id : readers[probabilities]) {
    const Expression& expr = fusion.expr(id);
    if (expr.op->name == "reshape" && !regrouped) {
      addAttentions(fusion, readers, softmax, expr.outputs[0], found);
    } else if (expr.op->name == "matmul" && expr.inputs[0] == probabilities) {
      found.push_back(ForwardMatch(fusion, readers).run(softmax, regrouped, id));
    } else if (expr.op->name == "permute") {
      backward = true;
    } else if (expr.op->name == "mul") {
      const AttentionMatch match(fusion, readers);
      backward = backward || match.definition(expr.inputs[0], "matmul") != nullptr;
    }
  }
  if (backward) found.push_back(backwardOf(fusion, readers, probabilities, regrouped));
}

}  // namespace

std::vector<Attention> attentionsOf(const Fusion& fusion) {
  std::vector<Attention> found;
  const AttentionMatch::Readers readers = readersOf(fusion);
  const AttentionMatch match(fusion, readers);
  for (const Expression& expr : fusion.exprs()) {
    if (expr.op->name != "where" || !match.isSoftmax(expr.outputs[0])) continue;
    addAttentions(fusion, readers, expr.outputs[0], expr.outputs[0], found);
  }
  return found;
}

}  // namespace heddle
