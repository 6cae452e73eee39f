#include "ir/analysis/concretize_sizes.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/base/check.h"
#include "ir/graph/declared_sizes.h"
#include "ir/graph/rewrite.h"
#include "ir/graph/size_scalars.h"

namespace heddle {
namespace {

class SizeConcretizer {
 public:
  SizeConcretizer(const Fusion& fusion, const SizeDecisions& decisions)
      : fusion_(fusion), rewriter_(fusion) {
    rewriter_.fusion().symbolic_sizes.clear();
    rewriter_.fusion().annotate(kDeclaredSizes, declaredSizesOf(fusion));
    for (const SizeDecisions::Decision& decision : decisions.decisions) {
      if (decision.is_one) ones_.insert(decision.symbol);
    }
    for (const ReshapeDecision& reshape : decisions.reshapes) {
      if (!reshape.then.empty()) reshapes_[reshape.value] = &reshape;
    }
  }

  // Copies the fusion. The builder chooses the extents and the kinds of axes again, and adds the
  // guards of all ops.
  Fusion run() && {
    for (ValueId id : fusion_.inputs()) input(id);
    for (ExprId id : fusion_.exprs().ids()) expression(id);
    std::vector<SizeGuard> guards = rewriter_.fusion().guards;
    Fusion result = std::move(rewriter_).finish();
    for (const SizeGuard& guard : fusion_.guards) {
      addGuard(guards, {decided(guard.a), decided(guard.b), guard.source, guard.at_most});
    }
    for (const std::string& symbol : ones_) {
      if (!isScalarSymbol(symbol)) continue;
      addGuard(guards, {Size::symbol(symbol), Size(1), "the value for which axes broadcast"});
    }
    for (const SizeGuard& guard : between_guards_) addGuard(guards, guard);
    result.guards = std::move(guards);
    // The result contains the number 1 in place of each symbol in `ones_`. The symbol of a size
    // therefore loses its default, so that a later attempt to set the size is an error. A symbol
    // that is the value of a scalar keeps a default, because the guard above contains it.
    std::erase_if(result.size_defaults, [&](const auto& entry) {
      return ones_.contains(entry.first) && !isScalarSymbol(entry.first);
    });
    for (auto& [symbol, size] : result.size_defaults) {
      if (ones_.contains(symbol)) size = 1;
    }
    return result;
  }

 private:
  Size decided(const Size& size) const {
    if (size.isConstant()) return size;
    return size.substitute([&](const std::string& symbol) {
      return ones_.contains(symbol) ? std::optional(Size(1)) : std::nullopt;
    });
  }

  static void addGuard(std::vector<SizeGuard>& guards, SizeGuard guard) {
    const bool are_numbers = guard.a.isConstant() && guard.b.isConstant();
    if (are_numbers && guard.at_most && guard.a.constant() <= guard.b.constant()) return;
    if (guard.a == guard.b) return;
    const bool is_known = std::any_of(guards.begin(), guards.end(), [&](const SizeGuard& each) {
      return each.a == guard.a && each.b == guard.b && each.at_most == guard.at_most;
    });
    if (!is_known) guards.push_back(std::move(guard));
  }

  // Returns the default value of the scalar. If the scalar was decided to be 1, a default becomes 1
  // too, so that it does not contradict the decision.
  std::optional<Scalar> defaultOf(const Value& scalar) const {
    const bool is_one = scalar.default_value && ones_.contains(scalarSymbol(scalar.name));
    return is_one ? Scalar(int64_t{1}) : scalar.default_value;
  }

  void input(ValueId id) {
    const Value& old = fusion_.value(id);
    FusionBuilder& builder = rewriter_.builder();
    builder.line(old.line);
    ValueId now = kNoValue;
    if (old.is_scalar) {
      now = builder.scalarInput(old.name, old.tensor.dtype, defaultOf(old));
      if (old.equals) rewriter_.fusion().mutableValue(now).equals = decided(*old.equals);
    } else {
      TensorView tensor = old.tensor;
      for (IterDomain& axis : tensor.domain) {
        axis.extent = decided(axis.extent);
        if (axis.kind == IterKind::Symbolic) axis.kind = IterKind::Iteration;
      }
      tensor.sharding.reset();
      now = builder.input(old.name, std::move(tensor));
    }
    keepProperties(now, id);
  }

  void expression(ExprId id) {
    const Expression& expr = fusion_.expr(id);
    std::vector<ValueId> operands;
    for (ValueId input : expr.inputs) operands.push_back(rewriter_.at(input));
    auto attrs = expr.attrs;
    for (auto& [name, attr] : attrs) {
      // Only attributes of the type std::vector<Size> contain sizes.
      auto* sizes = std::get_if<std::vector<Size>>(&attr);
      for (size_t i = 0; sizes != nullptr && i < sizes->size(); ++i) {
        (*sizes)[i] = decided((*sizes)[i]);
      }
    }
    const ValueId result = expr.outputs[0];
    const auto reshape = reshapes_.find(fusion_.value(result).name);
    const size_t guards = rewriter_.fusion().guards.size();
    if (reshape != reshapes_.end()) {
      operands[0] = between(*reshape->second, expr, operands[0], attrs);
    }
    rewriter_.builder().name(fusion_.value(result).name).line(expr.line);
    keepProperties(rewriter_.builder().apply(expr.op->name, std::move(operands), attrs), result);
    // If two reshapes replace a reshape, drop the guards of the second reshape. They follow from
    // the guards of the original reshape and the guards that between() adds.
    if (reshape != reshapes_.end()) rewriter_.fusion().guards.resize(guards);
  }

  // Adds the first of the two reshapes that replace a reshape. run() appends the guards of the new
  // reshape after all other guards. If the sizes of a run violate the guards of both the original
  // and the new reshape, the error is therefore about the original reshape.
  ValueId between(const ReshapeDecision& decision, const Expression& expr, ValueId operand,
                  std::vector<std::pair<std::string, Attr>> attrs) {
    const Value& result = fusion_.value(expr.outputs[0]);
    std::vector<SizeGuard>& guards = rewriter_.fusion().guards;
    const size_t before = guards.size();
    for (auto& [name, attr] : attrs) {
      // Only attributes of the type std::vector<Size> contain sizes.
      auto* sizes = std::get_if<std::vector<Size>>(&attr);
      if (sizes == nullptr) continue;
      *sizes = sizesBetween(decision, rewriter_.fusion().tensor(operand).sizes(), *sizes);
    }
    const bool splits = decision.first.front().to > 1;
    rewriter_.builder()
        .name(rewriter_.freeName(result.name + (splits ? "_split" : "_merged")))
        .line(expr.line);
    const ValueId now = rewriter_.builder().apply("reshape", {operand}, std::move(attrs));
    for (size_t i = before; i < guards.size(); ++i) {
      guards[i].source =
          fmt::format("the splits and merges of %{}{}, for which the program exists", result.name,
                      expr.line > 0 ? fmt::format(" at line {}", expr.line) : "");
      between_guards_.push_back(guards[i]);
    }
    return now;
  }

  // Copies the layout, the shardings and the line of the old value to `now`. Expressions that are
  // copied later then read `now` instead of the old value.
  void keepProperties(ValueId now, ValueId old) {
    const Value& from = fusion_.value(old);
    Value& to = rewriter_.fusion().mutableValue(now);
    HEDDLE_CHECK(to.tensor.rank() == from.tensor.rank() && to.tensor.dtype == from.tensor.dtype,
                 "%{} changed its type while its sizes were decided", from.name);
    to.tensor.layout = from.tensor.layout;
    to.tensor.sharding = from.tensor.sharding;
    to.user_sharding = from.user_sharding;
    to.line = from.line;
    rewriter_.stand(old, now);
  }

  const Fusion& fusion_;
  FusionRewriter rewriter_;
  std::set<std::string> ones_;
  // The decisions about reshapes that become two reshapes, by the name of the result of the
  // reshape.
  std::map<std::string, const ReshapeDecision*> reshapes_;
  std::vector<SizeGuard> between_guards_;
};

}  // namespace

std::string SizeDecisions::str() const {
  std::string text;
  for (const Decision& decision : decisions) {
    text += decision.symbol + (decision.is_one ? " = 1: broadcast\n" : ": iteration\n");
  }
  for (const ReshapeDecision& reshape : reshapes) text += reshape.str();
  return text;
}

SizeDecisions decideSizes(const Fusion& fusion, const SizeBindings& sizes) {
  SizeDecisions result{{}, decideReshapes(fusion, sizes)};
  const std::set<std::string> scalars = scalarSymbols(fusion);
  for (const std::string& symbol : fusion.symbolic_sizes) {
    const auto found = sizes.find(symbol);
    if (found == sizes.end() && isScalarSymbol(symbol) && !scalars.contains(symbol)) {
      result.decisions.push_back({symbol, false});  // no size contains this scalar
      continue;
    }
    HEDDLE_USER_CHECK(found != sizes.end(),
                      "fusion {}: size {}? has no value, which decides whether its axes broadcast: "
                      "give it a default size",
                      fusion.name, symbol);
    result.decisions.push_back({symbol, found->second == 1});
  }
  return result;
}

Fusion concretizeSizes(Fusion fusion, const SizeDecisions& decisions) {
  const bool reshapes =
      std::any_of(decisions.reshapes.begin(), decisions.reshapes.end(),
                  [](const ReshapeDecision& reshape) { return !reshape.then.empty(); });
  if (fusion.symbolic_sizes.empty() && !reshapes) return fusion;
  return SizeConcretizer(fusion, decisions).run();
}

Fusion concretizeSizes(Fusion fusion, const SizeBindings& sizes) {
  if (fusion.symbolic_sizes.empty()) return fusion;
  SizeDecisions decisions = decideSizes(fusion, sizes);
  decisions.reshapes.clear();
  return concretizeSizes(std::move(fusion), decisions);
}

}  // namespace heddle
