#include "codegen/plan/joint.h"

#include <algorithm>

#include "ir/base/check.h"

namespace heddle::codegen {
namespace {

class JointFinder {
 public:
  JointFinder(const Fusion& segment, const Analysis& analysis)
      : segment_(segment), analysis_(analysis) {}

  std::vector<JointReductions> run() {
    for (ExprId second : analysis_.reductions) {
      if (reduceOp(second) != ReduceOp::Sum || isUsed(second)) continue;
      for (ExprId first : analysis_.reductions) {
        if (first >= second) break;
        if (isUsed(first) || !isF32(resultOf(first)) || !isF32(resultOf(second))) continue;
        const JointReductions pair = match(first, second);
        if (pair.kind == JointKind::None) continue;
        found_.push_back(pair);
        break;
      }
    }
    return std::move(found_);
  }

 private:
  ReduceOp reduceOp(ExprId id) const { return *segment_.expr(id).op->reduce_op; }
  ValueId elementOf(ExprId id) const { return segment_.expr(id).inputs[0]; }
  ValueId resultOf(ExprId id) const { return segment_.expr(id).outputs[0]; }
  bool isF32(ValueId id) const { return segment_.tensor(id).dtype == DType::F32; }

  bool isUsed(ExprId id) const {
    return std::any_of(found_.begin(), found_.end(), [id](const JointReductions& pair) {
      return pair.first == id || pair.second == id;
    });
  }

  ValueId withoutBroadcast(ValueId id) const {
    for (;;) {
      const ExprId definition = segment_.value(id).definition;
      if (definition == kNoExpr) return id;
      const Expression& expr = segment_.expr(definition);
      const OpKind kind = expr.op->kind;
      if (kind != OpKind::Broadcast && kind != OpKind::Expand && kind != OpKind::Set) return id;
      id = expr.inputs[0];
    }
  }

  // Returns the expression that defines the value, if it is a pointwise f32 op with this text.
  // Otherwise returns nullptr. Looks through broadcasts, expands and sets of the value.
  const Expression* pointwise(ValueId id, std::string_view text) const {
    const ExprId definition = segment_.value(withoutBroadcast(id)).definition;
    if (definition == kNoExpr) return nullptr;
    const Expression& expr = segment_.expr(definition);
    const bool matches = expr.op->kind == OpKind::Pointwise && expr.op->text == text;
    return matches && isF32(expr.outputs[0]) ? &expr : nullptr;
  }

  // Returns the expression that defines the value, if it computes x - c for the elements x of the
  // reduction `first`. Otherwise returns nullptr.
  const Expression* differenceFrom(ExprId first, ValueId id) const {
    const Expression* difference = pointwise(id, "({0} - {1})");
    if (difference == nullptr || !isF32(elementOf(first))) return nullptr;
    const bool same = withoutBroadcast(difference->inputs[0]) == withoutBroadcast(elementOf(first));
    return same && isF32(difference->inputs[1]) ? difference : nullptr;
  }

  JointReductions match(ExprId first, ExprId second) const {
    const ReduceOp op = reduceOp(first);
    if (op == ReduceOp::Max && areExponentials(first, second)) {
      return {JointKind::Exponentials, first, second, kNoValue};
    }
    const ValueId center = op == ReduceOp::Sum ? centerOfSquares(first, second) : kNoValue;
    if (center == kNoValue) return {};
    return {JointKind::Moments, first, second, center};
  }

  bool areExponentials(ExprId first, ExprId second) const {
    const Expression* exponential = pointwise(elementOf(second), "hd::exp({0})");
    if (exponential == nullptr) return false;
    const Expression* difference = differenceFrom(first, exponential->inputs[0]);
    return difference != nullptr && withoutBroadcast(difference->inputs[1]) == resultOf(first);
  }

  // Returns c if the elements of `second` are (x - c)^2, otherwise kNoValue.
  ValueId centerOfSquares(ExprId first, ExprId second) const {
    const Expression* square = pointwise(elementOf(second), "({0} * {1})");
    if (square == nullptr || square->inputs[0] != square->inputs[1]) return kNoValue;
    const Expression* difference = differenceFrom(first, square->inputs[0]);
    if (difference == nullptr) return kNoValue;
    const ValueId center = withoutBroadcast(difference->inputs[1]);
    return dependsOnlyOn(resultOf(first), center) ? center : kNoValue;
  }

  // Returns whether `value` has one element per row, and depends on `result` but on no other
  // reduction. Another reduction might belong to a later sweep than the pair.
  bool dependsOnlyOn(ValueId result, ValueId value) const {
    IdVector<ValueId, bool> seen(segment_.values().size(), false);
    std::vector<ValueId> next{value};
    bool found = false;
    while (!next.empty()) {
      const ValueId id = next.back();
      next.pop_back();
      if (seen[id]) continue;
      seen[id] = true;
      found = found || id == result;
      if (id == result || !analysis_.after[id]) {
        if (hasReducedAxis(id)) return false;
        continue;
      }
      const Expression& expr = segment_.expr(segment_.value(id).definition);
      if (expr.op->kind == OpKind::Reduction || hasReducedAxis(id)) return false;
      next.insert(next.end(), expr.inputs.begin(), expr.inputs.end());
    }
    return found;
  }

  bool hasReducedAxis(ValueId id) const {
    const std::vector<AxisId>& axes = analysis_.axes[id];
    return std::any_of(axes.begin(), axes.end(),
                       [&](AxisId axis) { return axis.valid() && analysis_.reduced[axis]; });
  }

  const Fusion& segment_;
  const Analysis& analysis_;
  std::vector<JointReductions> found_;
};

}  // namespace

std::vector<JointReductions> jointReductions(const Fusion& segment, const Analysis& analysis) {
  return JointFinder(segment, analysis).run();
}

const JointText& jointText(JointKind kind) {
  static const JointText kExponentials{"hd::Exponentials",
                                       {"maximum", "sum", "scale"},
                                       "{0}.maximum",
                                       "hd::sumOfExponentials({0})",
                                       "-hd::infF32()"};
  static const JointText kMoments{
      "hd::Moments", {"count", "sum", "squares"}, "{0}.sum", "hd::squaresAround({0}, {1})", ""};
  HEDDLE_CHECK(kind != JointKind::None, "a text of JointKind::None is wanted");
  return kind == JointKind::Exponentials ? kExponentials : kMoments;
}

}  // namespace heddle::codegen
