#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/segment/attention/attention.h"

namespace heddle {

// Base class of the matchers for a forward attention and for its backward. It recognizes the ops
// that ir/composite/attention.cpp writes. Only the sources in ir/segment/attention use this class.
// To "take" an expression means to add it to Attention::exprs of the attention that is being
// matched (found_).
class AttentionMatch {
 public:
  using Readers = IdVector<ValueId, std::vector<ExprId>>;
  AttentionMatch(const Fusion& fusion, const Readers& readers)
      : fusion_(fusion), readers_(readers) {}

  // Returns the expression that computes the tensor `id`. Returns nullptr if the op of this
  // expression is not `op`, or if the value is a scalar or an input.
  const Expression* definition(ValueId id, std::string_view op) const;
  // Takes the expression that definition(id, op) returns, if there is one, and returns it.
  const Expression* take(ValueId id, std::string_view op);
  // Returns the expression with this op that reads the value as operand number `position`. Returns
  // nullptr if there is no such expression or more than one.
  const Expression* reader(ValueId id, std::string_view op, size_t position) const;

  // Returns whether the value is where(.., .., e / sum(e)) with e = exp(..).
  // ir/composite/attention.cpp writes a softmax in this form; takeSoftmax() checks the parts that
  // are left out here.
  bool isSoftmax(ValueId id) const;

 protected:
  static constexpr const char* kOther = "its ops are not those of scaled_dot_product_attention";

  // Takes the ops that compute the probabilities `id` from q and k. Returns "" if the ops match,
  // otherwise the reason why they do not match. With gqa (Attention::gqa), a reshape follows the
  // softmax. `id` is then the result of the softmax, with the shape [..., heads of q, queries,
  // keys]. Sets q, k, causal and scale of found_, and the members wide_q_, wide_k_ and scale_.
  std::string takeProbabilities(ValueId id);
  // Takes a reshape of a grouped-query attention. If `to_rows` is true, it reshapes [..., heads of
  // q, queries, n] to [..., heads of k, rows, n]. The rows are the queries of all heads of q that
  // share a head of k. If `to_rows` is false, it reshapes in the opposite direction. Returns the
  // operand of the reshape, or kNoValue if `id` is not the result of a reshape. whyNotIndexed()
  // checks the extents later, when q and k are known.
  ValueId takeRegrouped(ValueId id, bool to_rows);
  // Takes the cast that rounds the f32 result of `wide` to f16 or bf16, and returns the rounded
  // value. Returns kNoValue if there is no such cast, or if an expression other than the cast reads
  // the f32 result.
  ValueId takeRounded(const Expression& wide);
  // Returns the reason why takeRounded() returned kNoValue, for Attention::why_not. If the result
  // of `wide` is f32, the reason begins with `subject`, for example "its result is".
  std::string notRounded(const Expression& wide, std::string_view subject) const;
  // Takes the cast that widens an operand to f32, and returns the operand of the cast. Returns
  // kNoValue if there is no such cast.
  ValueId takeNarrow(ValueId wide);
  // Returns whether the permute swaps the last two axes and keeps all others.
  bool turnsLast(const Expression& permute) const;
  // Returns whether the reduction reduces only the last axis and has keepdim.
  bool isOverLast(const Expression& reduction) const;
  // Returns whether the value equals the scale that takeProbabilities() found: it is the same
  // value, or a literal with the same number.
  bool isSameScale(ValueId id) const;
  // Checks the types, ranks, axes and shardings of operands and results, and the reshapes that
  // takeRegrouped() has taken. Returns the reason why no library can compute the attention, or ""
  // if a library may.
  std::string whyNotIndexed() const;
  // Sorts Attention::exprs. Sets Attention::why_not if the fusion returns an intermediate value, or
  // if an expression outside of the attention reads one. Call this last.
  void finish();

  const Fusion& fusion_;
  const Readers& readers_;
  Attention found_;
  // q and k in f32. The matrix products read them; with gqa, they read a reshape of q.
  ValueId wide_q_ = kNoValue;
  ValueId wide_k_ = kNoValue;
  ValueId scale_ = kNoValue;  // the factor by which the fusion multiplies q k^T

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

// Matches the backward that reads these probabilities
// (ir/segment/attention/attention_backward.cpp). `regrouped` is true if the probabilities are a
// reshape of a softmax, as in grouped-query attention.
Attention backwardOf(const Fusion& fusion, const AttentionMatch::Readers& readers,
                     ValueId probabilities, bool regrouped);

}  // namespace heddle
