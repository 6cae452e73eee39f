#include "ir/passes/take_generated.h"

#include <algorithm>
#include <set>

#include "ir/cats/cat.h"
#include "ir/graph/remove_dead.h"
#include "ir/graph/rewrite.h"
#include "ir/passes/pick_elements.h"

namespace heddle {
namespace {

// The largest number of expressions that compute a generated value.
constexpr size_t kMostExprs = 256;

// Knows which values of a fusion are generated. The fusion may grow.
class Generated {
 public:
  // If `through_picks` is true, the result of an expression for which picksElements() is true
  // counts as generated if all its operands are generated values or scalars.
  Generated(const Fusion& fusion, bool through_picks)
      : fusion_(fusion), through_picks_(through_picks) {}

  bool has(ValueId value) {
    for (ValueId id : IdRange(flags_.endId(), fusion_.values().endId())) flags_.push_back(find(id));
    return flags_[value];
  }

  // Returns whether more than kMostExprs expressions compute the value, which must be generated.
  bool isLong(ValueId value) const {
    std::vector<ValueId> next = {value};
    std::set<ValueId> seen;
    while (!next.empty()) {
      const ValueId id = next.back();
      next.pop_back();
      if (fusion_.value(id).is_scalar || !seen.insert(id).second) continue;
      if (seen.size() > kMostExprs) return true;
      const Expression& expr = fusion_.expr(fusion_.value(id).definition);
      next.insert(next.end(), expr.inputs.begin(), expr.inputs.end());
    }
    return false;
  }

 private:
  bool find(ValueId id) const {
    const ExprId definition = fusion_.value(id).definition;
    if (fusion_.value(id).is_scalar || definition == kNoExpr) return false;
    const Expression& expr = fusion_.expr(definition);
    if (!generates(expr.op->kind) && !(through_picks_ && picksElements(expr))) return false;
    return std::all_of(expr.inputs.begin(), expr.inputs.end(), [&](ValueId input) {
      return fusion_.value(input).is_scalar || flags_[input];
    });
  }

  const Fusion& fusion_;
  const bool through_picks_;
  IdVector<ValueId, bool> flags_;
};

// Returns the expressions of the cats that have a piece that is not generated.
std::set<ExprId> mixedCats(const Fusion& fusion) {
  Generated generated(fusion, true);
  std::set<ExprId> exprs;
  for (const Cat& cat : catsOf(fusion)) {
    const bool is_mixed =
        !std::all_of(cat.pieces.begin(), cat.pieces.end(),
                     [&](const Cat::Piece& piece) { return generated.has(piece.value); });
    if (is_mixed) exprs.insert(cat.exprs.begin(), cat.exprs.end());
  }
  return exprs;
}

template <class IsWanted>
Fusion pickWanted(const Fusion& fusion, const IsWanted& is_wanted) {
  // Each replaced op computes its elements again, so many ops on one long value would make the
  // fusion much longer.
  constexpr size_t kMostAdded = 1000;
  const size_t most_exprs = 2 * fusion.exprs().size() + kMostAdded;
  FusionRewriter rewriter(fusion);
  Generated generated(rewriter.fusion(), false);
  const auto is_generated = [&](ValueId id) { return generated.has(id); };
  rewriter.inputs();
  for (ExprId id : fusion.exprs().ids()) {
    const Expression& expr = fusion.expr(id);
    const std::optional<Sharding>& sharding = fusion.tensor(expr.outputs[0]).sharding;
    const bool is_picked =
        picksElements(expr) && is_wanted(id) && rewriter.fusion().exprs().size() < most_exprs &&
        generated.has(rewriter.at(expr.inputs[0])) &&
        !generated.isLong(rewriter.at(expr.inputs[0])) && !(sharding && sharding->isPartial());
    if (is_picked) {
      pickElements(fusion, id, is_generated, rewriter);
    } else {
      rewriter.copy(id);
    }
  }
  return removeDead(std::move(rewriter).finish());
}

// Returns whether a wanted expression reads a generated value, so that the pass may replace it.
template <class IsWanted>
bool anyPicks(const Fusion& fusion, const IsWanted& is_wanted) {
  Generated generated(fusion, true);
  const IdRange<ExprId> ids = fusion.exprs().ids();
  return std::any_of(ids.begin(), ids.end(), [&](ExprId id) {
    const Expression& expr = fusion.expr(id);
    return picksElements(expr) && is_wanted(id) && generated.has(expr.inputs[0]);
  });
}

}  // namespace

Fusion takeGenerated(Fusion fusion) {
  if (!anyPicks(fusion, [](ExprId) { return true; })) return fusion;
  const std::set<ExprId> kept = mixedCats(fusion);
  return pickWanted(fusion, [&](ExprId id) { return !kept.contains(id); });
}

std::optional<Fusion> takeGenerated(const Fusion& fusion, const std::set<ExprId>& exprs) {
  const auto is_wanted = [&](ExprId id) { return exprs.contains(id); };
  if (!anyPicks(fusion, is_wanted)) return std::nullopt;
  return pickWanted(fusion, is_wanted);
}

}  // namespace heddle
