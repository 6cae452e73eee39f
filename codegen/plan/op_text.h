#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "codegen/plan/analysis.h"
#include "ir/graph/fusion.h"

namespace heddle::codegen {

// The kernel text of a pointwise op (OpDef::text in ir/ops/op.h).
struct OpText {
  std::string_view text;
  std::vector<ValueId> operands;  // {0}, {1} and so on in the text
};

// Returns the text for an expression of a segment. The text depends on more than the op:
// - As in PyTorch, x ** 2 and x ** 3 are products, and x ** 0.5 is a square root.
// - If only a rounded value of the result matters (Analysis::rounded), the text is the faster
//   OpDef::rounded_text. For the same reason, 1 + erf(z) becomes erfc(-z), and 1 + tanh(z) becomes
//   2 / (1 + exp(-2 z)), unless the kernel needs erf(z) or tanh(z) elsewhere too. The operand is
//   then z. On Cuda, these forms have a small relative error also where the sum cancels. On Cpp,
//   the form of erf is the sum 1 + erf(z).
//
// `is_given` says whether the kernel already has a value, and need not compute it.
OpText opTextOf(const Fusion& segment, const Analysis& analysis, const Expression& expr,
                const std::function<bool(ValueId)>& is_given);

// Returns the value of an expression of the kind OpKind::Constant.
Scalar constantValue(const Expression& constant);

}  // namespace heddle::codegen
