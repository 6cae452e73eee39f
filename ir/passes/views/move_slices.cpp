#include "ir/passes/views/move_slices.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/graph/rewrite.h"
#include "ir/passes/views/kernel_ops.h"

namespace heddle {
namespace {

bool hasScalar(const std::vector<Size>& sizes) {
  return std::any_of(sizes.begin(), sizes.end(), [](const Size& size) { return size.hasScalar(); });
}

// The most slices of one value that the pass moves.
constexpr size_t kMostSlices = 8;

// Returns whether the pass may move the expression: a flip, or a slice without scalars.
bool isPick(const Expression& expr) {
  if (expr.op->name == "flip") return true;
  return expr.op->kind == OpKind::Slice && !hasScalar(expr.attr<std::vector<Size>>("starts")) &&
         !hasScalar(expr.attr<std::vector<Size>>("stops"));
}

// Returns whether two slices of one value have no element in common: along some axis, one ends
// before the other begins.
bool areDisjoint(const Expression& a, const Expression& b) {
  const auto& starts_a = a.attr<std::vector<Size>>("starts");
  const auto& stops_a = a.attr<std::vector<Size>>("stops");
  const auto& starts_b = b.attr<std::vector<Size>>("starts");
  const auto& stops_b = b.attr<std::vector<Size>>("stops");
  const auto isBefore = [](const Size& stop, const Size& start) {
    const bool known = stop.isConstant() && start.isConstant();
    return stop == start || (known && stop.constant() <= start.constant());
  };
  for (size_t axis = 0; axis < starts_a.size(); ++axis) {
    if (isBefore(stops_a[axis], starts_b[axis]) || isBefore(stops_b[axis], starts_a[axis])) {
      return true;
    }
  }
  return false;
}

class SliceMover {
 public:
  explicit SliceMover(const Fusion& fusion)
      : old_(fusion), readers_(fusion.users()), rewriter_(fusion) {
    for (ValueId id : fusion.outputs()) outputs_.insert(id);
  }

  Fusion run() {
    for (ExprId id : old_.exprs().ids()) {
      if (!computesMoved(id)) continue;
      const std::optional<std::set<ExprId>> moved = movedFor(id);
      if (!moved) continue;
      for (ExprId reader : readers_[old_.expr(id).outputs[0]]) moves_.emplace(reader, *moved);
      claimed_.insert(moved->begin(), moved->end());
    }
    has_moved_ = !moves_.empty();
    if (!has_moved_) return old_;
    rewriter_.inputs();
    for (ExprId id : old_.exprs().ids()) {
      if (claimed_.contains(id)) continue;
      const auto found = moves_.find(id);
      if (found == moves_.end()) {
        rewriter_.copy(id);
      } else {
        rebuild(id, found->second);
      }
    }
    return std::move(rewriter_).finish();
  }

  bool hasMoved() const { return has_moved_; }

 private:
  // Returns the definition of the value if a kernel computes it, otherwise kNoExpr.
  ExprId kernelDefinition(ValueId id) const {
    const ExprId definition = old_.value(id).definition;
    const bool computes = definition != kNoExpr && !old_.value(id).is_scalar &&
                          mayBeInKernel(old_.expr(definition).op->kind);
    return computes ? definition : kNoExpr;
  }

  // Returns whether the value may become the result of another expression.
  bool isFree(ValueId id) const {
    return !outputs_.contains(id) && isFreeOfOrders(old_.tensor(id));
  }

  bool isReadByKernel(ValueId id) const {
    return std::any_of(readers_[id].begin(), readers_[id].end(),
                       [&](ExprId reader) { return isKernelOp(old_.expr(reader).op->kind); });
  }

  // Returns whether the expression computes a value that only movable slices and flips read.
  bool computesMoved(ExprId id) const {
    const Expression& expr = old_.expr(id);
    if (expr.op->kind != OpKind::Pointwise || old_.value(expr.outputs[0]).is_scalar) return false;
    const std::vector<ExprId>& readers = readers_[expr.outputs[0]];
    if (readers.empty() || readers.size() > kMostSlices) return false;
    for (size_t i = 0; i < readers.size(); ++i) {
      const Expression& pick = old_.expr(readers[i]);
      const ValueId result = pick.outputs[0];
      if (!isPick(pick) || !isFreeOfOrders(old_.tensor(result)) || !isReadByKernel(result)) {
        return false;
      }
      for (size_t j = 0; j < i; ++j) {
        const Expression& other = old_.expr(readers[j]);
        const bool are_slices = pick.op->kind == OpKind::Slice && other.op->kind == OpKind::Slice;
        if (!are_slices || !areDisjoint(pick, other)) return false;
      }
    }
    return true;
  }

  // Returns the definitions of the values that must be moved with the result of `last`, or nullopt
  // if one of them cannot be moved.
  std::optional<std::set<ExprId>> movedFor(ExprId last) const {
    std::set<ExprId> moved, pending{last};
    while (!pending.empty()) {
      const ExprId id = *pending.rbegin();  // all moved expressions that read its result are done
      pending.erase(id);
      const Expression& expr = old_.expr(id);
      const ValueId result = expr.outputs[0];
      const size_t rank = old_.tensor(result).rank();
      if (expr.op->kind != OpKind::Pointwise || !isFree(result) || claimed_.contains(id) ||
          moved.size() == kMostMoved) {
        return std::nullopt;
      }
      for (ExprId reader : readers_[result]) {
        if (id != last && !moved.contains(reader)) return std::nullopt;
      }
      moved.insert(id);
      for (ValueId input : expr.inputs) {
        if (!hasAxes(input)) continue;
        if (old_.tensor(input).rank() != rank) return std::nullopt;
        if (const ExprId definition = kernelDefinition(input); definition != kNoExpr) {
          pending.insert(definition);
        }
      }
    }
    return moved;
  }

  bool hasAxes(ValueId id) const { return !old_.value(id).is_scalar && old_.tensor(id).rank() > 0; }

  void rebuild(ExprId pick, const std::set<ExprId>& moved) {
    const Expression& expr = old_.expr(pick);
    std::map<ValueId, ValueId> now;  // moved value, or value in memory -> its selected elements
    for (ExprId id : moved) {
      const Expression& each = old_.expr(id);
      std::vector<ValueId> operands;
      for (ValueId input : each.inputs) {
        const auto [found, is_new] = now.try_emplace(input);
        if (is_new) found->second = hasAxes(input) ? picked(input, expr) : rewriter_.at(input);
        operands.push_back(found->second);
      }
      const bool is_last = each.outputs[0] == expr.inputs[0];
      const std::string& name = old_.value(is_last ? expr.outputs[0] : each.outputs[0]).name;
      now[each.outputs[0]] =
          rewriter_.copyAside(id, std::move(operands), is_last ? name : rewriter_.freeName(name));
      if (is_last) rewriter_.adopt(now[each.outputs[0]], expr.outputs[0]);
    }
  }

  // Returns the elements of a value in memory that `pick` selects. An axis of one element, which
  // the pointwise op repeats, stays as it is.
  ValueId picked(ValueId old, const Expression& pick) {
    const TensorView& tensor = old_.tensor(old);
    const TensorView& whole = old_.tensor(pick.inputs[0]);
    const auto is_repeated = [&](size_t axis) {
      return isUnitAxis(tensor, axis) && !isUnitAxis(whole, axis);
    };
    FusionBuilder& builder = rewriter_.builder();
    const Value& value = old_.value(old);
    if (pick.op->kind != OpKind::Slice) {
      std::vector<int64_t> axes;
      for (const int64_t axis : pick.attr<std::vector<int64_t>>("axes")) {
        if (!is_repeated(static_cast<size_t>(axis))) axes.push_back(axis);
      }
      if (axes.empty()) return rewriter_.at(old);
      builder.name(rewriter_.freeName(value.name + "_flipped")).line(value.line);
      return builder.flip(rewriter_.at(old), axes);
    }
    auto starts = pick.attr<std::vector<Size>>("starts");
    auto stops = pick.attr<std::vector<Size>>("stops");
    auto steps = pick.find("steps") == nullptr ? std::vector<int64_t>(starts.size(), 1)
                                               : pick.attr<std::vector<int64_t>>("steps");
    bool is_whole = true;
    for (size_t axis = 0; axis < starts.size(); ++axis) {
      const Size& extent = tensor.domain[axis].extent;
      if (is_repeated(axis)) {
        starts[axis] = Size(0);
        stops[axis] = extent;
        steps[axis] = 1;
      }
      is_whole =
          is_whole && starts[axis].isConstant(0) && stops[axis] == extent && steps[axis] == 1;
    }
    if (is_whole) return rewriter_.at(old);
    builder.name(rewriter_.freeName(value.name + "_sliced")).line(value.line);
    return builder.slice(rewriter_.at(old), starts, stops, steps);
  }

  const Fusion& old_;
  const IdVector<ValueId, std::vector<ExprId>> readers_;
  std::set<ValueId> outputs_;
  std::set<ExprId> claimed_;                  // the definitions of all moved values
  std::map<ExprId, std::set<ExprId>> moves_;  // slice or flip -> the definitions that it moves
  FusionRewriter rewriter_;
  bool has_moved_ = false;
};

}  // namespace

// A slice that is moved past one kernel may have to move past an earlier slice and its kernel.
Fusion moveSlices(Fusion fusion) {
  constexpr int kMostRounds = 8;
  for (int round = 0; round < kMostRounds; ++round) {
    SliceMover mover(fusion);
    Fusion moved = mover.run();
    if (!mover.hasMoved()) break;
    fusion = std::move(moved);
  }
  return fusion;
}

}  // namespace heddle
