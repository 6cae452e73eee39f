#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/segment/attention.h"

namespace heddle {

// What the search for a forward and that for a backward have in common; for ir/attention*.cpp only.
// Follows the ops of ir/composite/attention.cpp from the last to the first. What is taken belongs
// to the attention from then on.
class AttentionMatch {
 public:
  using Readers = IdVector<ValueId, std::vector<ExprId>>;
  AttentionMatch(const Fusion& fusion, const Readers& readers)
      : fusion_(fusion), readers_(readers) {}

  // The expression that makes a tensor when it is this op.
  const Expression* definition(ValueId id, std::string_view op) const;
  const Expression* take(ValueId id, std::string_view op);
  // The one op of this name that reads the value at a position; nullptr when there are none or
  // several.
  const Expression* reader(ValueId id, std::string_view op, size_t position) const;

  // Whether it is where(top == -inf, 0, exp(..) / sum(..)).
  bool isSoftmax(ValueId id) const;

 protected:
  static constexpr const char* kOther = "its ops are not those of scaled_dot_product_attention";

  // Takes what makes the probabilities of q and k. Returns why that cannot be; "" when it can.
  // With gqa these are as the mask has them, [..., heads of q, queries, keys].
  std::string takeProbabilities(ValueId id);
  // With gqa: takes the reshape of [..., heads of q, queries, n] to [..., heads of k, rows, n], or
  // back, and gives its operand; kNoValue when it is none. They are held against q and k at last.
  ValueId takeRegrouped(ValueId id, bool to_rows);
  // The half type that the only reader of a result rounds it to, which is taken too; kNoValue: it
  // is none.
  ValueId takeRounded(const Expression& wide);
  // Why takeRounded() gives none.
  std::string notRounded(const Expression& wide, std::string_view subject) const;
  // What an operand is before it is widened from a half type to f32; kNoValue when it is not.
  ValueId takeNarrow(ValueId wide);
  bool turnsLast(const Expression& permute) const;
  bool isOverLast(const Expression& reduction) const;
  // Whether it is the factor of the scores of takeProbabilities().
  bool isSameScale(ValueId id) const;
  std::string whyNotIndexed() const;
  // Everything is found: puts `exprs` in order and sees to it that nobody else reads a step.
  void finish();

  const Fusion& fusion_;
  const Readers& readers_;
  Attention found_;
  ValueId wide_q_ = kNoValue;  // of takeProbabilities(), as the products read them
  ValueId wide_k_ = kNoValue;
  ValueId scale_ = kNoValue;

 private:
  struct Regrouped {
    ValueId heads;
    ValueId rows;
  };
  ValueId takeSoftmax(ValueId id);
  bool isRegroupedByHeads(const Regrouped& each) const;
  bool isStretched(ValueId id, size_t axis) const;
  bool isCausal(const Expression& select);
  bool isIndexOf(ValueId scores, ValueId id, int64_t axis);
  const Expression* scalar(ValueId id, std::string_view op) const;
  std::optional<double> literal(ValueId id) const;
  bool isScale(ValueId id);
  std::string whyNotAlone() const;

  std::vector<Regrouped> regrouped_;
};

// ir/segment/attention_backward.cpp: the gradients that are made of these probabilities.
// `regrouped`: they are those that a reshape makes of a softmax.
Attention backwardOf(const Fusion& fusion, const AttentionMatch::Readers& readers,
                     ValueId probabilities, bool regrouped);

}  // namespace heddle
