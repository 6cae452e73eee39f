#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/segment/attention.h"

namespace heddle {

// Matches the ops that ir/composite/attention.cpp writes, from the last op to the first. The
// classes that search for a forward and for a backward derive from it. Only
// ir/segment/attention*.cpp use it. To "take" an expression means to add it to Attention::exprs of
// the attention that is being matched.
class AttentionMatch {
 public:
  using Readers = IdVector<ValueId, std::vector<ExprId>>;
  AttentionMatch(const Fusion& fusion, const Readers& readers)
      : fusion_(fusion), readers_(readers) {}

  // Returns the expression that computes the tensor, or nullptr if its op is not `op` or if the
  // value is a scalar or an input.
  const Expression* definition(ValueId id, std::string_view op) const;
  // Takes definition(id, op) and returns it.
  const Expression* take(ValueId id, std::string_view op);
  // Returns the expression with this op that reads the value as operand number `position`, or
  // nullptr if there are none or several.
  const Expression* reader(ValueId id, std::string_view op, size_t position) const;

  // Returns whether the value is where(top == -inf, 0, exp(..) / sum(..)).
  bool isSoftmax(ValueId id) const;

 protected:
  static constexpr const char* kOther = "its ops are not those of scaled_dot_product_attention";

  // Takes the ops that compute the probabilities `id` from q and k. Returns the reason why the ops
  // do not match, or "" if they match. With gqa the probabilities have the shape of the mask, [...,
  // heads of q, queries, keys].
  std::string takeProbabilities(ValueId id);
  // For gqa. Takes the reshape of [..., heads of q, queries, n] to [..., heads of k, rows, n]
  // (`to_rows`) or the reverse one. Returns its operand, or kNoValue if the value is not the result
  // of a reshape. whyNotIndexed() checks the extents later, when q and k are known.
  ValueId takeRegrouped(ValueId id, bool to_rows);
  // Takes the cast that rounds the f32 result of `wide` to f16 or bf16, and returns the rounded
  // value. Returns kNoValue unless this cast is the only reader of the result.
  ValueId takeRounded(const Expression& wide);
  // Returns the reason why takeRounded() returned kNoValue, for Attention::why_not.
  std::string notRounded(const Expression& wide, std::string_view subject) const;
  // Takes the cast that widens an operand to f32, and returns the operand of the cast. Returns
  // kNoValue if there is no such cast.
  ValueId takeNarrow(ValueId wide);
  // Returns whether the permute swaps the last two axes.
  bool turnsLast(const Expression& permute) const;
  // Returns whether the reduction reduces the last axis and has keepdim.
  bool isOverLast(const Expression& reduction) const;
  // Returns whether the value is the scale of the scores that takeProbabilities() found.
  bool isSameScale(ValueId id) const;
  // Checks the types, ranks, axes and shardings of operands and results. Returns the reason
  // why no library can compute the attention, or "" if a library may.
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
// `regrouped` is true if the probabilities are a reshape of a softmax, as for gqa.
Attention backwardOf(const Fusion& fusion, const AttentionMatch::Readers& readers,
                     ValueId probabilities, bool regrouped);

}  // namespace heddle
