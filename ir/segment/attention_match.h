#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/segment/attention.h"

namespace heddle {

// Matches the ops of ir/composite/attention.cpp, from the last to the first. The searches for a
// forward and for a backward share this class; only ir/segment/attention*.cpp use it. To take an
// expression means to add it to the attention.
class AttentionMatch {
 public:
  using Readers = IdVector<ValueId, std::vector<ExprId>>;
  AttentionMatch(const Fusion& fusion, const Readers& readers)
      : fusion_(fusion), readers_(readers) {}

  // Returns the expression that computes a tensor; nullptr if it is another op or the value is a
  // scalar or an input.
  const Expression* definition(ValueId id, std::string_view op) const;
  // Takes definition(id, op) and returns it.
  const Expression* take(ValueId id, std::string_view op);
  // Returns the op of this name that reads the value as the operand at `position`; nullptr if there
  // are none or several.
  const Expression* reader(ValueId id, std::string_view op, size_t position) const;

  // Returns whether the value is where(top == -inf, 0, exp(..) / sum(..)).
  bool isSoftmax(ValueId id) const;

 protected:
  static constexpr const char* kOther = "its ops are not those of scaled_dot_product_attention";

  // Takes the ops that compute the probabilities `id` from q and k. Returns why they do not match;
  // "" if they match. With gqa the probabilities have the shape of the mask, [..., heads of q,
  // queries, keys].
  std::string takeProbabilities(ValueId id);
  // With gqa: takes the reshape of [..., heads of q, queries, n] to [..., heads of k, rows, n], or
  // the reverse, and returns its operand; kNoValue: it is no reshape. whyNotIndexed() checks the
  // extents when q and k are known.
  ValueId takeRegrouped(ValueId id, bool to_rows);
  // Takes the cast that rounds an f32 result to f16 or bf16 and returns the rounded value.
  // kNoValue: the only reader of the result is no such cast, or there are several readers.
  ValueId takeRounded(const Expression& wide);
  // Returns why takeRounded() returned kNoValue.
  std::string notRounded(const Expression& wide, std::string_view subject) const;
  // Takes the cast that widens an operand to f32 and returns the value before it; kNoValue: there
  // is no such cast.
  ValueId takeNarrow(ValueId wide);
  // Returns whether the permute swaps the last two axes.
  bool turnsLast(const Expression& permute) const;
  // Returns whether the reduction reduces the last axis and keeps its dimension.
  bool isOverLast(const Expression& reduction) const;
  // Returns whether the value is the scale of the scores that takeProbabilities() found.
  bool isSameScale(ValueId id) const;
  // Checks the types, ranks, axes and shardings of operands and results. Returns why no library
  // computes them; "" if one may.
  std::string whyNotIndexed() const;
  // Call this last. Sorts `exprs` and checks that no other expression reads an intermediate value.
  void finish();

  const Fusion& fusion_;
  const Readers& readers_;
  Attention found_;
  ValueId wide_q_ = kNoValue;  // q and k in f32, as the matrix products read them
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

// Matches the backward that reads these probabilities (ir/segment/attention_backward.cpp).
// `regrouped`: the probabilities are a reshape of a softmax.
Attention backwardOf(const Fusion& fusion, const AttentionMatch::Readers& readers,
                     ValueId probabilities, bool regrouped);

}  // namespace heddle
