#include "ir/passes/views/move_picks.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/analysis/kernel_rules.h"
#include "ir/cats/cat.h"
#include "ir/composite/composite.h"
#include "ir/graph/remove_dead.h"
#include "ir/passes/views/kernel_ops.h"
#include "ir/passes/views/pick.h"

namespace heddle {
namespace {

constexpr size_t kMostPicks = 8;       // picks of one value
constexpr size_t kMostPieces = 4;      // computed pieces of a cat
constexpr int64_t kMostExpensive = 4;  // expensive ops of all pieces of a cat
constexpr size_t kMostCheap = 16;      // expressions that may be computed again

// The definitions of the values that one pick moves, with the picked axes of their results.
using Move = std::map<ExprId, PickedAxes>;

size_t countLongAxes(const TensorView& tensor) {
  size_t count = 0;
  for (size_t axis = 0; axis < tensor.rank(); ++axis) count += isUnitAxis(tensor, axis) ? 0 : 1;
  return count;
}

bool isElementwise(const Expression& expr) {
  return expr.op->kind == OpKind::Pointwise || expr.op->kind == OpKind::Broadcast;
}

bool isExpensive(const Expression& expr) {
  return expr.op->kind != OpKind::Broadcast && !isCheap(*expr.op);
}

class PickMover {
 public:
  explicit PickMover(const Fusion& fusion)
      : old_(fusion),
        readers_(readersOf(fusion)),
        is_output_(fusion.outputFlags()),
        cats_(catsOf(fusion)),
        rewriter_(fusion) {
    for (const Cat& cat : cats_) {
      for (ExprId id : cat.exprs) cat_of_.emplace(id, &cat);
    }
  }

  Fusion run() {
    for (ExprId id : old_.exprs().ids()) findMoves(id);
    for (const Cat& cat : cats_) keepCatTogether(cat);
    moveCatsLast();
    has_moved_ = !moves_.empty();
    if (!has_moved_) return old_;
    std::set<ValueId> moved;
    for (const auto& [pick, move] : moves_) {
      for (const auto& [id, axes] : move) moved.insert(old_.expr(id).outputs[0]);
    }
    rewriter_.inputs();
    for (ExprId id : old_.exprs().ids()) {
      const Expression& expr = old_.expr(id);
      if (const auto found = moves_.find(id); found != moves_.end()) {
        rebuild(expr, found->second);
      } else if (expr.op->kind == OpKind::SizeOf && moved.contains(expr.inputs[0])) {
        // A copy of this expression would keep the moved value alive.
        const Size& extent = old_.tensor(expr.inputs[0]).domain[expr.axis()].extent;
        rewriter_.stand(expr.outputs[0], scalarFrom(rewriter_.builder(), extent));
      } else {
        rewriter_.copy(id);
      }
    }
    return removeDead(std::move(rewriter_).finish());
  }

  bool hasMoved() const { return has_moved_; }

 private:
  const Cat* catOf(ExprId id) const {
    const auto found = cat_of_.find(id);
    return found == cat_of_.end() ? nullptr : found->second;
  }

  bool isPickExpr(ExprId id) const { return isPick(old_, old_.expr(id), catOf(id) != nullptr); }

  // Returns the definition of the value if a kernel computes it, otherwise kNoExpr.
  ExprId kernelDefinition(ValueId id) const {
    const ExprId definition = old_.value(id).definition;
    const bool computes = definition != kNoExpr && !old_.value(id).is_scalar &&
                          mayBeInKernel(old_.expr(definition).op->kind);
    return computes ? definition : kNoExpr;
  }

  bool isReadByKernel(ValueId id) const {
    return std::any_of(readers_[id].begin(), readers_[id].end(),
                       [&](ExprId reader) { return isKernelOp(old_.expr(reader).op->kind); });
  }

  // Returns whether it is worth moving the pick, if it can be moved.
  bool isWorthMoving(ExprId id) const {
    const Expression& pick = old_.expr(id);
    const ValueId result = pick.outputs[0];
    if (const Cat* cat = catOf(id)) return isReadByKernel(cat->result);
    if (pick.op->kind != OpKind::Slice || isReadByKernel(result)) return true;
    return std::any_of(readers_[result].begin(), readers_[result].end(), [&](ExprId reader) {
      return isPickExpr(reader) && old_.expr(reader).op->kind == OpKind::Index;
    });
  }

  // Finds the picks of the result of an expression that can be moved.
  void findMoves(ExprId last) {
    const ValueId value = old_.expr(last).outputs[0];
    if (kernelDefinition(value) == kNoExpr) return;
    std::vector<ExprId> picks;
    for (ExprId reader : readers_[value]) {
      const Expression& expr = old_.expr(reader);
      if (!isPickExpr(reader) || expr.inputs[0] != value) continue;
      if (isFreeOfOrders(old_.tensor(expr.outputs[0])) && isWorthMoving(reader)) {
        picks.push_back(reader);
      }
    }
    if (picks.size() > kMostPicks) return;
    std::map<ExprId, Move> moves;
    for (ExprId pick : picks) {
      if (std::optional<Move> move = moveOf(pick, last)) moves.emplace(pick, std::move(*move));
    }
    const bool computes_once =
        moves.size() == readers_[value].size() && areDisjoint(picks) && readNothingElse(moves);
    for (auto& [pick, move] : moves) {
      if (computes_once || isCheapToRepeat(pick, move)) moves_.emplace(pick, std::move(move));
    }
  }

  bool areDisjoint(const std::vector<ExprId>& picks) const {
    for (size_t i = 0; i < picks.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (!areDisjointSlices(old_.expr(picks[i]), old_.expr(picks[j]))) return false;
      }
    }
    return true;
  }

  // Returns whether only the picks, and expressions that they move, read the moved values.
  bool readNothingElse(const std::map<ExprId, Move>& moves) const {
    const auto isMoved = [&](ExprId id) {
      return std::any_of(moves.begin(), moves.end(), [&](const auto& move) {
        return move.first == id || move.second.contains(id);
      });
    };
    for (const auto& [pick, move] : moves) {
      for (const auto& [id, axes] : move) {
        const ValueId result = old_.expr(id).outputs[0];
        const bool only_moved =
            std::all_of(readers_[result].begin(), readers_[result].end(), isMoved);
        const bool is_reduction = old_.expr(id).op->kind == OpKind::Reduction;
        if (is_output_[result] || !only_moved || (is_reduction && moves.size() > 1)) return false;
      }
    }
    return true;
  }

  // Checks the exception of move_picks.h: whether elements of the moved values may be computed
  // again.
  bool isCheapToRepeat(ExprId pick, const Move& move) const {
    if (move.size() > kMostCheap) return false;
    const TensorView& last = old_.tensor(old_.expr(pick).inputs[0]);
    std::set<ValueId> full;  // the values in memory that have all axes
    for (const auto& [id, axes] : move) {
      const Expression& expr = old_.expr(id);
      if (isExpensive(expr)) return false;
      for (ValueId input : expr.inputs) {
        if (old_.value(input).is_scalar || move.contains(old_.value(input).definition)) continue;
        const TensorView& tensor = old_.tensor(input);
        if (countLongAxes(tensor) < countLongAxes(last)) continue;
        full.insert(input);
        if (sizeOf(tensor.dtype) > sizeOf(last.dtype)) return false;
      }
    }
    return full.size() <= 1;
  }

  // Returns the values that the pick moves, or nullopt if one of them cannot be moved.
  std::optional<Move> moveOf(ExprId pick, ExprId last) const {
    const Expression& root = old_.expr(pick);
    const bool may_reduce = root.op->kind == OpKind::Slice || root.op->name == "flip";
    Move move;
    std::map<ExprId, PickedAxes> pending{{last, pickedAxesOf(old_, root)}};
    if (isWhole(pending.at(last))) return std::nullopt;
    while (!pending.empty()) {
      // The expression with the largest id: all moved expressions that read its result are done.
      const auto [id, axes] = *pending.rbegin();
      pending.erase(id);
      const Expression& expr = old_.expr(id);
      if (!isFreeOfOrders(old_.tensor(expr.outputs[0])) || move.size() == kMostMoved ||
          !(isElementwise(expr) || (may_reduce && expr.op->kind == OpKind::Reduction))) {
        return std::nullopt;
      }
      move.emplace(id, axes);
      for (ValueId input : expr.inputs) {
        if (old_.value(input).is_scalar) continue;
        const std::optional<PickedAxes> of_input = operandAxes(old_, expr, input, axes);
        if (!of_input || old_.tensor(input).sharding) return std::nullopt;
        const ExprId definition = kernelDefinition(input);
        if (definition == kNoExpr || isWhole(*of_input)) continue;
        const auto [found, is_new] = pending.try_emplace(definition, *of_input);
        if (!is_new && found->second != *of_input) return std::nullopt;
      }
    }
    return move;
  }

  // Moves either all computed pieces of a cat or none.
  void keepCatTogether(const Cat& cat) {
    size_t moved = 0, computed = 0;
    int64_t expensive = 0;
    std::vector<ExprId> picks;
    for (ExprId id : cat.exprs) {
      if (!isPickExpr(id)) continue;
      picks.push_back(id);
      computed += kernelDefinition(old_.expr(id).inputs[0]) == kNoExpr ? 0 : 1;
      const auto found = moves_.find(id);
      if (found == moves_.end()) continue;
      ++moved;
      expensive += std::count_if(found->second.begin(), found->second.end(), [&](const auto& one) {
        return isExpensive(old_.expr(one.first));
      });
    }
    const bool is_cheap = computed <= kMostPieces && expensive <= kMostExpensive;
    if (moved == computed && is_cheap) return;
    for (ExprId id : picks) moves_.erase(id);
  }

  // A cat is recognized only as long as all its pads are in place. Moving a slice may make a piece
  // of the cat movable. Slices and flips therefore move in earlier rounds than cats.
  void moveCatsLast() {
    const auto isOfCat = [&](const auto& move) { return catOf(move.first) != nullptr; };
    if (!std::all_of(moves_.begin(), moves_.end(), isOfCat)) std::erase_if(moves_, isOfCat);
  }

  // Computes the moved values from picked elements. The last one replaces the result of the pick.
  void rebuild(const Expression& pick, const Move& move) {
    const Value& result = old_.value(pick.outputs[0]);
    const bool is_pad = pick.op->name == "pad" && catOf(result.definition) == nullptr;
    std::map<ValueId, ValueId> now;                            // moved value -> its replacement
    std::map<std::pair<ValueId, PickedAxes>, ValueId> picked;  // of values in memory
    for (const auto& [id, axes] : move) {
      const Expression& expr = old_.expr(id);
      std::vector<ValueId> operands;
      for (ValueId input : expr.inputs) {
        if (const auto found = now.find(input); found != now.end()) {
          operands.push_back(found->second);
        } else if (old_.value(input).is_scalar) {
          operands.push_back(rewriter_.at(input));
        } else {
          const PickedAxes of_input = *operandAxes(old_, expr, input, axes);
          const auto [place, is_new] = picked.try_emplace({input, of_input});
          if (is_new) place->second = appendPick(old_, rewriter_, pick, input, of_input);
          operands.push_back(place->second);
        }
      }
      const bool is_last = expr.outputs[0] == pick.inputs[0];
      const std::string& name = old_.value(expr.outputs[0]).name;
      now[expr.outputs[0]] = rewriter_.copyAside(
          id, std::move(operands), is_last && !is_pad ? result.name : rewriter_.freeName(name));
    }
    ValueId last = now.at(pick.inputs[0]);
    if (is_pad) last = onlyInside(pick, last);
    rewriter_.adopt(last, pick.outputs[0]);
  }

  // Returns the result of a pad: the elements of `value` inside, and the fill value outside.
  ValueId onlyInside(const Expression& pad, ValueId value) {
    const Value& result = old_.value(pad.outputs[0]);
    FusionBuilder& builder = rewriter_.builder();
    builder.line(result.line);
    ValueId fill = rewriter_.at(pad.inputs[1]);
    if (old_.tensor(pad.inputs[1]).dtype != result.tensor.dtype) {
      fill = builder.cast(fill, result.tensor.dtype);
    }
    const ValueId inside = appendIsInside(old_, rewriter_, pad);
    builder.name(result.name);
    return builder.pointwise("where", {inside, value, fill});
  }

  const Fusion& old_;
  const IdVector<ValueId, std::vector<ExprId>> readers_;
  const IdVector<ValueId, bool> is_output_;
  const std::vector<Cat> cats_;
  std::map<ExprId, const Cat*> cat_of_;
  std::map<ExprId, Move> moves_;  // of each pick that is moved
  FusionRewriter rewriter_;
  bool has_moved_ = false;
};

}  // namespace

// A pick that is moved past one kernel may have to move past an earlier pick and its kernel. Each
// round may double the expressions, if several slices read one value. The rounds end before the
// fusion has more than twice its expressions, and kMoreExprs.
Fusion movePicks(Fusion fusion) {
  constexpr int kMostRounds = 8;
  constexpr size_t kMoreExprs = 256;
  const size_t most = 2 * fusion.exprs().size() + kMoreExprs;
  for (int round = 0; round < kMostRounds; ++round) {
    PickMover mover(fusion);
    Fusion moved = mover.run();
    if (!mover.hasMoved() || moved.exprs().size() > most) break;
    fusion = std::move(moved);
  }
  return fusion;
}

}  // namespace heddle
