#include "ir/segment/choose_views.h"

#include <algorithm>
#include <map>

#include "ir/analysis/axis_map.h"
#include "ir/analysis/kernel_rules.h"
#include "ir/analysis/memory_order.h"
#include "ir/analysis/reshard_step.h"
#include "ir/base/check.h"
#include "ir/segment/group_kind.h"

namespace heddle {
namespace {

// Describes the memory of a value that is a view.
struct Strides {
  std::vector<bool> repeats;  // per axis: the stride is 0
  bool row_major = false;     // the axes that do not repeat elements are dense and row-major
};

class ViewChooser {
 public:
  ViewChooser(const SegmentedFusion& segmented, const std::set<ExprId>& chosen)
      : segmented_(segmented),
        fusion_(segmented.fusion),
        readers_(readersOf(fusion_)),
        result_{chosen, {}} {}

  ChosenViews run() {
    for (ExprId id : fusion_.exprs().ids()) {
      if (!isCandidate(id)) continue;
      const std::vector<ExprId> chain = chainOf(id);
      const std::string why = whyStored(id, chain);
      if (why.empty()) {
        result_.exprs.insert(chain.begin(), chain.end());
        // The earlier expressions of the chain are now views too. Known strides of values that view
        // their results may therefore be wrong.
        if (chain.size() > 1) strides_.clear();
      } else if (fusion_.expr(id).op->kind == OpKind::Expand) {
        result_.notes.push_back(
            fmt::format("expand of %{} is not a view: {}", nameOf(resultOf(id)), why));
      }
    }
    return std::move(result_);
  }

 private:
  ValueId resultOf(ExprId id) const { return fusion_.expr(id).outputs[0]; }
  const std::string& nameOf(ValueId id) const { return fusion_.value(id).name; }

  bool addsAxes(ExprId id) const {
    const OpKind kind = fusion_.expr(id).op->kind;
    return kind == OpKind::Broadcast || kind == OpKind::Expand;
  }

  const Group& groupOf(ExprId id) const { return segmented_.groups[segmented_.group_of[id]]; }

  bool isStored(ValueId id) const {
    const ExprId definition = fusion_.value(id).definition;
    const std::vector<ValueId>& outputs = groupOf(definition).outputs;
    return std::find(outputs.begin(), outputs.end(), id) != outputs.end();
  }

  // Returns whether a kernel computes the expression and stores its result.
  bool isCandidate(ExprId id) const {
    return addsAxes(id) && segmented_.group_of[id] >= 0 && groupOf(id).kind == GroupKind::Kernel &&
           isStored(resultOf(id));
  }

  // Returns the group that computes the value, or -1 if there is none, as for an input.
  int definingGroup(ValueId id) const {
    const ExprId definition = fusion_.value(id).definition;
    return definition == kNoExpr ? -1 : segmented_.group_of[definition];
  }

  // Returns the expression and the broadcasts and expands of the same kernel before it, if they
  // lead to a value in memory. Otherwise returns only the expression.
  std::vector<ExprId> chainOf(ExprId id) const {
    std::vector<ExprId> chain{id};
    ValueId base = fusion_.expr(id).inputs[0];
    while (definingGroup(base) == segmented_.group_of[id]) {
      const ExprId definition = fusion_.value(base).definition;
      if (!addsAxes(definition)) return {id};
      chain.push_back(definition);
      base = fusion_.expr(definition).inputs[0];
    }
    return chain;
  }

  // Returns "" if the expressions of `chain` can be views. Otherwise returns the reason why the
  // result of `id` is stored. `chain` lists the expressions from `id` back to the first one.
  std::string whyStored(ExprId id, const std::vector<ExprId>& chain) {
    const ValueId result = resultOf(id);
    const ValueId base = fusion_.expr(chain.back()).inputs[0];
    if (definingGroup(base) == segmented_.group_of[id]) {
      const auto here = [&](ExprId reader) {
        return segmented_.group_of[reader] == segmented_.group_of[id];
      };
      if (std::any_of(readers_[result].begin(), readers_[result].end(), here)) {
        return fmt::format(
            "the kernel that computes %{} also computes other values from the result",
            nameOf(base));
      }
      if (fusion_.expr(id).op->kind == OpKind::Broadcast && !isStored(base)) {
        return fmt::format("its kernel computes %{}", nameOf(base));
      }
    }
    for (ExprId each : chain) {
      const ValueId value = resultOf(each);
      if (fusion_.tensor(value).layout.required) {
        return fmt::format("the memory order of %{} is required", nameOf(value));
      }
    }
    return whyDense(result, stridesOf(id, chain));
  }

  // Returns whether the expression is a view of its operand if the expressions of `chain` become
  // views.
  bool isView(ExprId id, const std::vector<ExprId>& chain) const {
    if (id == kNoExpr || !(addsAxes(id) || viewsOperand(fusion_.expr(id)))) return false;
    if (std::find(chain.begin(), chain.end(), id) != chain.end()) return true;
    const int group = segmented_.group_of[id];
    return result_.exprs.contains(id) || (group >= 0 && groupOf(id).kind == GroupKind::Metadata);
  }

  // Returns the strides of the result of `id` as a view of memory.
  Strides stridesOf(ExprId id, const std::vector<ExprId>& chain) {
    std::vector<ExprId> views{id};
    ValueId base = fusion_.expr(id).inputs[0];
    auto known = strides_.find(base);
    while (known == strides_.end()) {
      const ExprId definition = fusion_.value(base).definition;
      if (!isView(definition, chain)) break;
      views.push_back(definition);
      base = fusion_.expr(definition).inputs[0];
      known = strides_.find(base);
    }
    Strides strides = known == strides_.end() ? stridesInMemory(base) : known->second;
    for (auto view = views.rbegin(); view != views.rend(); ++view) {
      strides = viewed(strides, fusion_.expr(*view));
      const bool is_decided = std::find(chain.begin(), chain.end(), *view) == chain.end();
      if (is_decided) strides_[resultOf(*view)] = strides;
    }
    return strides;
  }

  Strides stridesInMemory(ValueId id) const {
    const std::optional<AxisOrder> order = elementOrder(fusion_, id);
    const TensorView& tensor = fusion_.tensor(id);
    return {std::vector<bool>(tensor.rank(), false),
            order && sameOrder(*order, rowMajor(tensor.rank()), tensor)};
  }

  // Returns whether an expression with this op can be a view of its operand. A reshape is a view
  // only if whyNoReshape() returns "". All other ops listed here are views for any strides of the
  // operand.
  bool viewsOperand(const Expression& expr) const {
    switch (expr.op->kind) {
      case OpKind::Permute:
      case OpKind::Slice:
      case OpKind::Diagonal:
      case OpKind::Reshape:
        return true;
      case OpKind::Set: {
        const ReshardStep::Kind step = reshardStepOf(fusion_, expr).kind;
        return step == ReshardStep::Kind::Same || step == ReshardStep::Kind::Slice;
      }
      default:
        return false;
    }
  }

  // Returns the strides of the result of `expr`, a view of a value with the strides `of`. If `expr`
  // is a reshape, whyNoReshape() must have returned "".
  Strides viewed(const Strides& of, const Expression& expr) const {
    const TensorView& in = fusion_.tensor(expr.inputs[0]);
    const TensorView& out = fusion_.tensor(expr.outputs[0]);
    const AxisMap map = axisMapOf(fusion_, expr);
    const OpKind kind = expr.op->kind;
    Strides strides{std::vector<bool>(out.rank(), false), of.row_major};
    if (kind == OpKind::Permute || kind == OpKind::Slice || kind == OpKind::Diagonal) {
      strides.row_major = false;
    }
    if (kind == OpKind::Set && reshardStepOf(fusion_, expr).kind == ReshardStep::Kind::Slice) {
      strides.row_major = false;
    }
    const size_t front = kind == OpKind::Expand ? out.rank() - in.rank() : 0;
    for (size_t axis = 0; axis < front; ++axis) strides.repeats[axis] = !isUnitAxis(out, axis);
    for (size_t axis = 0; axis < in.rank(); ++axis) {
      if (kind == OpKind::Expand) {
        const bool is_stretched = isUnitAxis(in, axis) && !isUnitAxis(out, axis + front);
        strides.repeats[axis + front] = of.repeats[axis] || is_stretched;
      } else if (map.inputs[0][axis] != AxisMap::kNone) {
        strides.repeats[map.inputs[0][axis]] = of.repeats[axis];
      } else if (kind == OpKind::Slice) {
        strides.repeats[axis] = of.repeats[axis];
      }
    }
    if (kind == OpKind::Reshape) regroup(of, map, strides);
    return strides;
  }

  // Sets Strides::repeats of the axes that a reshape creates by splitting or merging.
  static void regroup(const Strides& of, const AxisMap& map, Strides& strides) {
    bool repeats = false;
    std::vector<bool> is_kept(strides.repeats.size(), false);
    for (size_t axis = 0; axis < of.repeats.size(); ++axis) {
      const int to = map.inputs[0][axis];
      if (to == AxisMap::kNone) repeats = repeats || of.repeats[axis];
      if (to != AxisMap::kNone) is_kept[to] = true;
    }
    for (size_t axis = 0; axis < is_kept.size(); ++axis) {
      if (!is_kept[axis]) strides.repeats[axis] = repeats;
    }
  }

  // Returns "" if the reshape of a value with these strides is a view. Otherwise returns the
  // reason.
  std::string whyNoReshape(const Strides& of, const Expression& reshape) const {
    const TensorView& in = fusion_.tensor(reshape.inputs[0]);
    const AxisMap map = axisMapOf(fusion_, reshape);
    size_t repeated = 0;
    size_t others = 0;
    for (size_t axis = 0; axis < in.rank(); ++axis) {
      if (map.inputs[0][axis] != AxisMap::kNone || isUnitAxis(in, axis)) continue;
      ++(of.repeats[axis] ? repeated : others);
    }
    if (others == 0 || (repeated == 0 && (others == 1 || of.row_major))) return {};
    return fmt::format("the reshape to %{} needs its elements in row-major order",
                       nameOf(reshape.outputs[0]));
  }

  // Returns "" if all readers of the value, and of its views, accept these strides. Otherwise
  // returns the reason.
  std::string whyDense(ValueId value, const Strides& strides) const {
    std::vector<std::pair<ValueId, Strides>> open{{value, strides}};
    while (!open.empty()) {
      const auto [id, mine] = std::move(open.back());
      open.pop_back();
      for (ExprId reader : readers_[id]) {
        if (segmented_.group_of[reader] < 0) continue;
        const Expression& expr = fusion_.expr(reader);
        const GroupKind kind = groupOf(reader).kind;
        if (kind == GroupKind::Library || kind == GroupKind::Communication) {
          return whatItIs(fusion_, expr, kind) + ", which reads dense memory";
        }
        if (kind != GroupKind::Metadata) continue;
        if (expr.op->kind == OpKind::Reshape) {
          std::string why = whyNoReshape(mine, expr);
          if (!why.empty()) return why;
        }
        const ValueId result = expr.outputs[0];
        if (fusion_.tensor(result).layout.required) {
          return fmt::format("the memory order of %{}, a view of it, is required", nameOf(result));
        }
        open.emplace_back(result, viewed(mine, expr));
      }
    }
    return {};
  }

  const SegmentedFusion& segmented_;
  const Fusion& fusion_;
  const IdVector<ValueId, std::vector<ExprId>> readers_;
  ChosenViews result_;
  std::map<ValueId, Strides> strides_;  // strides of values that are views, as chosen so far
};

}  // namespace

ChosenViews chooseViews(const SegmentedFusion& segmented, const std::set<ExprId>& chosen) {
  return ViewChooser(segmented, chosen).run();
}

}  // namespace heddle
