#include "codegen/plan/op_text.h"

#include <algorithm>
#include <optional>

#include "ir/base/check.h"
#include "ir/graph/compute_type.h"
#include "ir/ops/literal.h"

namespace heddle::codegen {
namespace {

// Returns the expression of the value if it is a constant, otherwise nullptr.
const Expression* constantOf(const Fusion& segment, ValueId id) {
  const ExprId definition = segment.value(id).definition;
  if (definition == kNoExpr) return nullptr;
  const Expression& expr = segment.expr(definition);
  return expr.op->kind == OpKind::Constant ? &expr : nullptr;
}

std::string_view powerText(const Fusion& segment, const Expression& expr) {
  if (!isPowByNumber(segment, expr)) return expr.op->text;
  const bool integer = !isFloat(segment.tensor(expr.outputs[0]).dtype);
  const Expression* exponent = constantOf(segment, expr.inputs[1]);
  if (exponent == nullptr) return integer ? expr.op->text : "hd::powByNumber({0}, {1})";
  const double value = toDouble(constantValue(*exponent));
  if (value == 2) return "({0} * {0})";
  if (value == 3) return "({0} * {0} * {0})";
  if (value == 0.5) return "hd::sqrt({0})";
  if (value == -0.5) return "hd::rsqrt({0})";
  return expr.op->text;
}

// A function f for which 1 + f(z) has a faster form.
struct OnePlus {
  std::string_view op;
  std::string_view text;
};
constexpr OnePlus kOnePlus[] = {{"erf", "hd::nearErfc(-{0})"},
                                {"tanh", "hd::overOnePlus(2, hd::nearExp(-2 * {0}))"}};

// Returns whether the sum of f(z) and 1 is the only use of the value f(z).
bool isOnlyForSum(const Fusion& segment, ValueId id) {
  const std::vector<ValueId>& outputs = segment.outputs();
  int64_t readers = std::count(outputs.begin(), outputs.end(), id);
  for (const Expression& expr : segment.exprs()) {
    readers += std::count(expr.inputs.begin(), expr.inputs.end(), id);
  }
  return readers == 1;
}

// Returns the text of f(z) + 1 for a function f of kOnePlus that is computed in f32, or nullopt for
// another expression. If something else needs f(z), the sum is faster than the text.
std::optional<OpText> onePlusText(const Fusion& segment, const Expression& expr,
                                  const std::function<bool(ValueId)>& is_given) {
  if (expr.op->name != "add") return std::nullopt;
  for (const size_t i : {size_t{0}, size_t{1}}) {
    const Expression* one = constantOf(segment, expr.inputs[1 - i]);
    const ValueId sum = expr.inputs[i];
    const ExprId definition = segment.value(sum).definition;
    if (one == nullptr || definition == kNoExpr || is_given(sum)) continue;
    const Expression& function = segment.expr(definition);
    // The fusion rounds a narrower f(z) before it adds 1.
    const bool is_single = segment.tensor(sum).dtype == DType::F32;
    if (toDouble(constantValue(*one)) != 1 || !is_single) continue;
    for (const OnePlus& each : kOnePlus) {
      if (function.op->name != each.op || !isOnlyForSum(segment, sum)) continue;
      return OpText{each.text, {function.inputs[0]}};
    }
  }
  return std::nullopt;
}

}  // namespace

Scalar constantValue(const Expression& constant) {
  const Attr* value = constant.find("value");
  HEDDLE_CHECK(value != nullptr, "a constant without value");
  return literalValue(*value);
}

OpText opTextOf(const Fusion& segment, const Analysis& analysis, const Expression& expr,
                const std::function<bool(ValueId)>& is_given) {
  const bool is_rounded =
      analysis.rounded[expr.outputs[0]] && computeTypeOf(segment, expr) == DType::F32;
  if (is_rounded) {
    if (const std::optional<OpText> found = onePlusText(segment, expr, is_given)) return *found;
    if (!expr.op->rounded_text.empty()) return {expr.op->rounded_text, expr.inputs};
  }
  return {powerText(segment, expr), expr.inputs};
}

}  // namespace heddle::codegen
