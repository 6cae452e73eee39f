#include "ir/passes/views/move_permutes.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/analysis/kernel_rules.h"
#include "ir/graph/rewrite.h"
#include "ir/passes/views/kernel_ops.h"

namespace heddle {
namespace {

// New axis i is old axis order[i], as in a permute.
using Order = std::vector<int64_t>;

bool contains(const std::vector<int64_t>& list, int64_t item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

// Returns the positions in `order` of the axes in `axes`, ascending.
std::vector<int64_t> positionsOf(const Order& order, const std::vector<int64_t>& axes) {
  std::vector<int64_t> positions;
  for (size_t i = 0; i < order.size(); ++i) {
    if (contains(axes, order[i])) positions.push_back(static_cast<int64_t>(i));
  }
  return positions;
}

// Returns the axes from 0 to rank - 1 that are not in `axes`.
std::vector<int64_t> othersOf(size_t rank, const std::vector<int64_t>& axes) {
  std::vector<int64_t> others;
  for (int64_t axis = 0; axis < static_cast<int64_t>(rank); ++axis) {
    if (!contains(axes, axis)) others.push_back(axis);
  }
  return others;
}

const std::vector<int64_t>& axesOf(const Expression& expr) {
  return expr.attr<std::vector<int64_t>>("axes");
}

// Returns the order of the axes of the tensor operand of an op with one tensor operand, if the
// result has the axes in `order`. If a reduction removes axes, they come last.
Order operandOrder(const Fusion& fusion, const Expression& expr, const Order& order) {
  const size_t rank = fusion.tensor(expr.inputs[0]).rank();
  switch (expr.op->kind) {
    case OpKind::Permute: {
      Order through;
      for (const int64_t axis : order) through.push_back(axesOf(expr)[static_cast<size_t>(axis)]);
      return through;
    }
    case OpKind::Broadcast: {
      const std::vector<int64_t> old = othersOf(order.size(), axesOf(expr));
      Order kept;
      for (const int64_t axis : order) {
        const auto found = std::find(old.begin(), old.end(), axis);
        if (found != old.end()) kept.push_back(found - old.begin());
      }
      return kept;
    }
    case OpKind::Reduction: {
      if (order.size() == rank) return order;
      const std::vector<int64_t> kept = othersOf(rank, axesOf(expr));
      Order all;
      for (const int64_t axis : order) all.push_back(kept[static_cast<size_t>(axis)]);
      all.insert(all.end(), axesOf(expr).begin(), axesOf(expr).end());
      return all;
    }
    default:
      return order;
  }
}

// Returns whether the operand of `expr` may have its axes in the order `given` if the result has
// them in `order`. The axes that a reduction removes may be anywhere.
bool suitsOperand(const Fusion& fusion, const Expression& expr, const Order& order,
                  const Order& given) {
  const Order needed = operandOrder(fusion, expr, order);
  if (expr.op->kind != OpKind::Reduction || order.size() == needed.size()) return given == needed;
  Order kept;
  for (const int64_t axis : given) {
    if (!contains(axesOf(expr), axis)) kept.push_back(axis);
  }
  return std::equal(kept.begin(), kept.end(), needed.begin());
}

// The definitions of the values that one permute moves, with the new order of their axes.
using Move = std::map<ExprId, Order>;

class PermuteMover {
 public:
  explicit PermuteMover(const Fusion& fusion)
      : old_(fusion),
        readers_(readersOf(fusion)),
        is_computed_(fusion.values().size(), false),
        rewriter_(fusion) {
    for (ValueId id : fusion.outputs()) outputs_.insert(id);
    for (const Expression& expr : fusion.exprs()) {
      const ValueId result = expr.outputs[0];
      const bool views_computed = expr.op->kind == OpKind::Permute && is_computed_[expr.inputs[0]];
      is_computed_[result] =
          !fusion.value(result).is_scalar && (mayBeInKernel(expr.op->kind) || views_computed);
    }
  }

  Fusion run() {
    // Later permutes first: the values that they move may include earlier permutes.
    for (ExprId id : old_.exprs().ids().reversed()) {
      if (old_.expr(id).op->kind != OpKind::Permute || moved_.contains(id)) continue;
      const std::optional<Move> move = moveOf(id);
      if (!move) continue;
      moved_.insert(move->begin(), move->end());
      roots_.emplace(old_.expr(id).inputs[0], id);
    }
    if (roots_.empty()) return old_;
    rewriter_.inputs();
    for (ExprId id : old_.exprs().ids()) rebuild(id);
    return std::move(rewriter_).finish();
  }

 private:
  bool isFree(ValueId id) const { return isFreeOfOrders(old_.tensor(id)); }

  bool isReadByKernel(ValueId id) const {
    return std::any_of(readers_[id].begin(), readers_[id].end(),
                       [&](ExprId reader) { return isKernelOp(old_.expr(reader).op->kind); });
  }

  // Returns the definition of the value if it must be moved, or kNoExpr if the value stays.
  ExprId movedDefinition(ValueId id) const {
    return is_computed_[id] ? old_.value(id).definition : kNoExpr;
  }

  // Returns whether the pass can compute the expression with other orders of axes.
  bool isMovable(const Expression& expr) const {
    if (expr.op->kind == OpKind::Permute) return true;
    const size_t rank = old_.tensor(expr.outputs[0]).rank();
    if (expr.op->kind == OpKind::Expand) return old_.tensor(expr.inputs[0]).rank() == rank;
    if (expr.op->kind != OpKind::Pointwise) return isKernelOp(expr.op->kind);
    return std::all_of(expr.inputs.begin(), expr.inputs.end(), [&](ValueId input) {
      return old_.value(input).is_scalar || old_.tensor(input).rank() == 0 ||
             old_.tensor(input).rank() == rank;
    });
  }

  // Returns the values that the permute moves, or nullopt if it cannot be moved.
  std::optional<Move> moveOf(ExprId root) const {
    const Expression& permute = old_.expr(root);
    const ExprId last = movedDefinition(permute.inputs[0]);
    const bool suits = last != kNoExpr && old_.expr(last).op->kind != OpKind::Permute &&
                       isFree(permute.outputs[0]) && isReadByKernel(permute.outputs[0]);
    if (!suits) return std::nullopt;
    Move move;
    std::map<ExprId, Order> pending{{last, axesOf(permute)}};
    while (!pending.empty()) {
      // The expression with the largest id: all moved expressions that read its result are done.
      const auto [id, order] = *pending.rbegin();
      pending.erase(id);
      const Expression& expr = old_.expr(id);
      const ValueId result = expr.outputs[0];
      if (!isMovable(expr) || outputs_.contains(result) || !isFree(result) || moved_.contains(id) ||
          move.size() == kMostMoved) {
        return std::nullopt;
      }
      for (ExprId reader : readers_[result]) {
        if (reader != root && !move.contains(reader)) return std::nullopt;
      }
      move.emplace(id, order);
      for (ValueId input : expr.inputs) {
        const ExprId definition = movedDefinition(input);
        if (definition == kNoExpr || old_.tensor(input).rank() == 0) continue;
        const auto found = pending.find(definition);
        if (found == pending.end()) {
          pending.emplace(definition, operandOrder(old_, expr, order));
        } else if (!suitsOperand(old_, expr, order, found->second)) {
          return std::nullopt;
        }
      }
    }
    return move;
  }

  // Returns whether the result of the permute is already rebuilt, because it is its moved operand.
  bool isRoot(ExprId id) const {
    const auto found =
        roots_.find(old_.expr(id).inputs.empty() ? kNoValue : old_.expr(id).inputs[0]);
    return found != roots_.end() && found->second == id;
  }

  // Rebuilds an expression. The last value that a permute moves becomes the result of the permute.
  void rebuild(ExprId id) {
    const Expression& expr = old_.expr(id);
    const auto moved = moved_.find(id);
    if (moved == moved_.end()) {
      if (isRoot(id)) return;
      if (expr.op->kind == OpKind::SizeOf && now_.contains(expr.inputs[0])) return rebuildSize(id);
      rewriter_.copy(id);
      return;
    }
    const ValueId result = expr.outputs[0];
    if (expr.op->kind == OpKind::Permute) {
      now_[result] = operandOf(expr.inputs[0], operandOrder(old_, expr, moved->second));
      return;
    }
    const auto root = roots_.find(result);
    const ValueId named = root == roots_.end() ? result : old_.expr(root->second).outputs[0];
    now_[result] = computed(id, old_.value(named).name);
    if (named != result) rewriter_.adopt(now_[result], named);
  }

  // Rebuilds an expression that gives the size of a moved value along an axis.
  void rebuildSize(ExprId id) {
    const Expression& expr = old_.expr(id);
    const ExprId definition = old_.value(expr.inputs[0]).definition;
    const auto axis = static_cast<int64_t>(expr.axis());
    const int64_t now = positionsOf(moved_.at(definition), {axis}).at(0);
    rewriter_.builder().name(old_.value(expr.outputs[0]).name).line(expr.line);
    rewriter_.adopt(rewriter_.builder().sizeOf(now_.at(expr.inputs[0]), now), expr.outputs[0]);
  }

  // Returns the new value that replaces the operand, with its axes in this order.
  ValueId operandOf(ValueId old, const Order& order) {
    if (const auto found = now_.find(old); found != now_.end()) return found->second;
    if (old_.value(old).is_scalar || std::is_sorted(order.begin(), order.end())) {
      return rewriter_.at(old);
    }
    const auto [found, is_new] = views_.try_emplace({old, order});
    if (is_new) {
      const Value& value = old_.value(old);
      rewriter_.builder().name(rewriter_.freeName(value.name + "_permuted")).line(value.line);
      found->second = rewriter_.builder().permute(rewriter_.at(old), order);
    }
    return found->second;
  }

  // Computes the result of a moved expression.
  ValueId computed(ExprId id, const std::string& name) {
    const Expression& expr = old_.expr(id);
    const Order& order = moved_.at(id);
    FusionBuilder& builder = rewriter_.builder();
    if (expr.op->kind == OpKind::Pointwise) {
      std::vector<ValueId> operands;
      for (ValueId input : expr.inputs) {
        const bool has_axes = !old_.value(input).is_scalar && old_.tensor(input).rank() > 0;
        operands.push_back(operandOf(input, has_axes ? order : Order{}));
      }
      return rewriter_.copyAside(id, std::move(operands), name);
    }
    if (expr.op->kind == OpKind::Full) {
      const ValueId scalar = rewriter_.at(expr.inputs[0]);
      builder.name(name).line(expr.line);
      return builder.full(scalar, sizesOf(expr, order), old_.tensor(expr.outputs[0]).dtype);
    }
    const auto moved = moved_.find(old_.value(expr.inputs[0]).definition);
    const Order of_operand = moved == moved_.end() ? memoryOrder(expr, order) : moved->second;
    const ValueId operand = operandOf(expr.inputs[0], of_operand);
    builder.name(name).line(expr.line);
    if (expr.op->kind == OpKind::Expand) return builder.expand(operand, sizesOf(expr, order));
    if (expr.op->kind == OpKind::Broadcast) {
      return builder.broadcast(operand, positionsOf(order, axesOf(expr)));
    }
    const bool keepdim = order.size() == of_operand.size();
    return builder.reduce(expr.op->name, operand, positionsOf(of_operand, axesOf(expr)), keepdim);
  }

  // Returns the order of the axes of an operand in memory. A reduction that removes axes takes the
  // order in which another moved expression reads the same value, if it can. Both then read the
  // same view, and can be one kernel.
  Order memoryOrder(const Expression& expr, const Order& order) const {
    if (expr.op->kind != OpKind::Reduction) return operandOrder(old_, expr, order);
    for (ExprId reader : readers_[expr.inputs[0]]) {
      const auto found = moved_.find(reader);
      if (found == moved_.end() || old_.expr(reader).op->kind == OpKind::Reduction) continue;
      const Order other = operandOrder(old_, old_.expr(reader), found->second);
      if (other.size() == old_.tensor(expr.inputs[0]).rank() &&
          suitsOperand(old_, expr, order, other)) {
        return other;
      }
    }
    return operandOrder(old_, expr, order);
  }

  // Returns the extents of the result of an expression, with its axes in this order.
  std::vector<Size> sizesOf(const Expression& expr, const Order& order) const {
    const std::vector<Size> old = old_.tensor(expr.outputs[0]).sizes();
    std::vector<Size> sizes;
    for (const int64_t axis : order) sizes.push_back(old[static_cast<size_t>(axis)]);
    return sizes;
  }

  const Fusion& old_;
  const IdVector<ValueId, std::vector<ExprId>> readers_;
  std::set<ValueId> outputs_;
  // Per value: a kernel computes it, or it is a permute of such a value. It must then be moved.
  IdVector<ValueId, bool> is_computed_;
  Move moved_;                       // of all permutes
  std::map<ValueId, ExprId> roots_;  // the operand of each permute that is moved -> the permute
  FusionRewriter rewriter_;
  std::map<ValueId, ValueId> now_;                      // moved value -> its replacement
  std::map<std::pair<ValueId, Order>, ValueId> views_;  // permutes of values in memory
};

}  // namespace

Fusion movePermutes(const Fusion& fusion) { return PermuteMover(fusion).run(); }

}  // namespace heddle
