#include "ir/passes/views/split_axes.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "ir/analysis/axis_map.h"
#include "ir/analysis/kernel_rules.h"
#include "ir/analysis/memory_order.h"
#include "ir/graph/rewrite.h"

namespace heddle {
namespace {

using Sizes = std::vector<Size>;

// Identifies one axis of one value. One axis of each class (AxisClasses) also identifies the class.
using Node = size_t;

// A reshape that splits or merges one axis.
struct Regrouping {
  ValueId whole;  // the operand or result that has the axis in one piece
  size_t axis;    // the index of the axis in `whole`
  Sizes parts;
  ValueId apart;  // the operand or result that has the axis in parts
};

bool isUnit(const TensorView& tensor, size_t axis) {
  return tensor.domain[axis].extent.isConstant(1);
}

bool hasBroadcastAxis(const TensorView& tensor) {
  return std::any_of(tensor.domain.begin(), tensor.domain.end(),
                     [](const IterDomain& axis) { return axis.kind == IterKind::Broadcast; });
}

// Returns the axis that the reshape splits or merges, if there is exactly one.
std::optional<Regrouping> regroupingOf(const Fusion& fusion, const Expression& reshape) {
  const TensorView& in = fusion.tensor(reshape.inputs[0]);
  const TensorView& out = fusion.tensor(reshape.outputs[0]);
  const std::vector<int> kept = axisMapOf(fusion, reshape).inputs[0];
  const auto is_kept = [](int axis) { return axis != AxisMap::kNone; };
  size_t left = 0;
  while (left < in.rank() && left < out.rank() && kept[left] == static_cast<int>(left)) ++left;
  const size_t right =
      std::count_if(kept.begin() + static_cast<ptrdiff_t>(left), kept.end(), is_kept);
  size_t from = in.rank() - left - right;
  size_t to = out.rank() - left - right;
  if (from == 0 && to == 0) return {};
  // An axis of one element that appears or disappears counts as a part of a neighbour.
  if (from == 0 || to == 0) {
    if (left + right == 0) return {};
    left -= left > 0 ? 1 : 0;
    ++from;
    ++to;
  }
  const auto sizesAt = [&](const TensorView& tensor, size_t count) {
    const Sizes sizes = tensor.sizes();
    const auto begin = sizes.begin() + static_cast<ptrdiff_t>(left);
    return Sizes(begin, begin + static_cast<ptrdiff_t>(count));
  };
  if (from == 1) return Regrouping{reshape.inputs[0], left, sizesAt(out, to), reshape.outputs[0]};
  if (to == 1) return Regrouping{reshape.outputs[0], left, sizesAt(in, from), reshape.inputs[0]};
  return {};
}

// Finds the axes to split. Axes that correspond in an expression of a kernel are one class, and a
// class is split as a whole.
class AxisClasses {
 public:
  explicit AxisClasses(const Fusion& fusion)
      : fusion_(fusion),
        users_(fusion.users()),
        is_output_(fusion.outputFlags()),
        is_in_input_(fusion.values().size(), false),
        layouts_(elementLayouts(fusion)) {
    for (size_t i = 0; i < fusion.outputs().size(); ++i) {
      if (fusion.reuses()[i]) is_in_input_[fusion.outputs()[i]] = true;
    }
    for (const Value& value : fusion.values()) {
      first_.push_back(parent_.size());
      parent_.resize(parent_.size() + (value.is_scalar ? 0 : value.tensor.rank()));
    }
    std::iota(parent_.begin(), parent_.end(), Node{0});
    for (const Expression& expr : fusion.exprs()) joinAxes(expr);
    blocked_.assign(parent_.size(), false);
    is_part_.assign(parent_.size(), false);
    has_broadcast_.assign(parent_.size(), false);
    extents_.resize(parent_.size());
    for (ValueId id : fusion.values().ids()) describe(id);
    for (const Expression& expr : fusion.exprs()) blockIndexed(expr);
    for (ExprId id : fusion.exprs().ids()) split(id);
  }

  bool removes(ExprId reshape) const { return removed_.has(reshape) && removed_[reshape]; }
  bool isAnySplit() const { return !splits_.empty(); }

  // Returns the extents that replace the axis.
  Sizes pieces(ValueId id, size_t axis) const {
    const TensorView& tensor = fusion_.tensor(id);
    const auto found = splits_.find(find(first_[id] + axis));
    if (found == splits_.end()) return {tensor.domain[axis].extent};
    return isUnit(tensor, axis) ? Sizes(found->second.size(), Size(1)) : found->second;
  }

  bool isSplit(ValueId id) const {
    if (fusion_.value(id).is_scalar || splits_.empty()) return false;
    for (size_t axis = 0; axis < fusion_.tensor(id).rank(); ++axis) {
      if (splits_.contains(find(first_[id] + axis))) return true;
    }
    return false;
  }

  // Returns whether the expression runs in a kernel and can be rebuilt on split axes.
  bool isKernelOp(const Expression& expr) const {
    const OpKind kind = expr.op->kind;
    return !isHostScalar(fusion_, expr) && roleOf(kind) == OpRole::Kernel && kind != OpKind::Index;
  }

  // Returns whether the value is an output of the fusion, or has a reader for which isKernelOp() is
  // false. Removed reshapes do not count as readers. While this object is constructed, no reshape
  // counts as removed yet.
  bool isNeededWhole(ValueId id) const {
    return is_output_[id] || std::any_of(users_[id].begin(), users_[id].end(), [&](ExprId user) {
             return !isKernelOp(fusion_.expr(user)) && !removes(user);
           });
  }

 private:
  Node find(Node node) const {
    while (parent_[node] != node) node = parent_[node] = parent_[parent_[node]];
    return node;
  }
  void join(Node a, Node b) { parent_[find(a)] = find(b); }

  bool isComputedByKernel(ValueId id) const {
    const ExprId definition = fusion_.value(id).definition;
    return definition != kNoExpr && isKernelOp(fusion_.expr(definition));
  }

  // Returns whether a kernel computes the operand of the reshape and another one reads the result.
  bool separatesKernels(const Expression& expr) const {
    const ValueId out = expr.outputs[0];
    return expr.op->kind == OpKind::Reshape && isComputedByKernel(expr.inputs[0]) &&
           std::any_of(users_[out].begin(), users_[out].end(),
                       [&](ExprId user) { return isKernelOp(fusion_.expr(user)); });
  }

  void joinAxes(const Expression& expr) {
    if (separatesKernels(expr)) joinKeptAxes(expr);
    if (!isKernelOp(expr)) return;
    const ValueId out = expr.outputs[0];
    const AxisMap map = axisMapOf(fusion_, expr);
    // In these ops, an axis of one element corresponds to the result axis at the same position,
    // although the axis map has no entry for it.
    const bool by_position = expr.op->kind == OpKind::Pointwise || expr.op->kind == OpKind::Expand;
    const auto& results = map.outputs[0];
    for (size_t i = 0; i < map.inputs.size(); ++i) {
      for (size_t axis = 0; axis < map.inputs[i].size(); ++axis) {
        const Node node = first_[expr.inputs[i]] + axis;
        const int position = by_position ? static_cast<int>(axis) : map.inputs[i][axis];
        const auto result = std::find(results.begin(), results.end(), position);
        if (position == AxisMap::kNone || result == results.end()) continue;
        join(node, first_[out] + static_cast<size_t>(result - results.begin()));
      }
    }
    if (expr.op->kind == OpKind::Reduction) joinUnits(expr);
  }

  // Joins the axes that the reshape neither splits nor merges.
  void joinKeptAxes(const Expression& reshape) {
    const std::optional<Regrouping> found = regroupingOf(fusion_, reshape);
    if (!found) return;
    const size_t added = found->parts.size() - 1;
    for (size_t axis = 0; axis < fusion_.tensor(found->whole).rank(); ++axis) {
      if (axis == found->axis) continue;
      const size_t other = axis < found->axis ? axis : axis + added;
      join(first_[found->whole] + axis, first_[found->apart] + other);
    }
  }

  // Joins each reduced axis with the axis of one element that `keepdim` leaves in its place.
  void joinUnits(const Expression& reduction) {
    const size_t rank = fusion_.tensor(reduction.inputs[0]).rank();
    if (fusion_.tensor(reduction.outputs[0]).rank() != rank) return;
    for (size_t axis = 0; axis < rank; ++axis) {
      join(first_[reduction.inputs[0]] + axis, first_[reduction.outputs[0]] + axis);
    }
  }

  // Notes the extents of the value's axes, and whether they must stay as they are.
  void describe(ValueId id) {
    const Value& value = fusion_.value(id);
    if (value.is_scalar) return;
    const TensorView& tensor = value.tensor;
    bool stays = tensor.sharding || tensor.hasFixedOrder() || tensor.layout.hint;
    // An output that is stored in an input needs its own buffer. If its axes were split, the output
    // would be a view of the split value.
    stays = stays || is_in_input_[id];
    // The pass inserts reshapes to these extents. An extent %n may be -1 in a run, and a reshape
    // then computes the extent from its operand.
    for (const IterDomain& axis : tensor.domain) stays = stays || axis.extent.hasScalar();
    // A reshape would turn a broadcast axis into an ordinary axis.
    const bool is_reshaped = !isComputedByKernel(id) || isNeededWhole(id);
    stays = stays || (hasBroadcastAxis(tensor) && is_reshaped);
    if (!stays && !isComputedByKernel(id)) {
      const std::optional<AxisOrder> order = orderWithoutGaps(layouts_[id]);
      stays = !order || !sameOrder(*order, rowMajor(tensor.rank()), tensor);
    }
    for (size_t axis = 0; axis < tensor.rank(); ++axis) {
      const Node node = find(first_[id] + axis);
      if (stays) blocked_[node] = true;
      if (tensor.domain[axis].kind == IterKind::Broadcast) has_broadcast_[node] = true;
      if (isUnit(tensor, axis)) continue;
      const Size& extent = tensor.domain[axis].extent;
      if (!extents_[node]) extents_[node] = extent;
      if (!(*extents_[node] == extent)) blocked_[node] = true;
    }
  }

  // Blocks the axes of the results of flip, pad, take and take_along_axis (OpKind::Index). Kernels
  // compute these results, but the pass cannot rebuild the expressions on split axes. A reshape of
  // such a result would separate the kernel from the readers. Also blocks the axis of an iota.
  void blockIndexed(const Expression& expr) {
    const ValueId out = expr.outputs[0];
    if (expr.op->kind == OpKind::Iota) blocked_[find(first_[out] + expr.axis())] = true;
    if (expr.op->kind != OpKind::Index) return;
    for (size_t axis = 0; axis < fusion_.tensor(out).rank(); ++axis) {
      blocked_[find(first_[out] + axis)] = true;
    }
  }

  // If `id` is a reshape that becomes unnecessary when the class of its axis is split, splits the
  // class and marks the reshape as removed.
  void split(ExprId id) {
    const Expression& expr = fusion_.expr(id);
    removed_.push_back(false);
    if (!separatesKernels(expr)) return;
    const std::optional<Regrouping> found = regroupingOf(fusion_, expr);
    if (!found || (is_output_[found->apart] && found->apart == expr.outputs[0])) return;
    const Node node = find(first_[found->whole] + found->axis);
    // A reshape makes the broadcast axes of its operand ordinary. Such a reshape must stay. A part
    // of one element could become a broadcast axis if a value of the class has one.
    const bool has_unit = std::any_of(found->parts.begin(), found->parts.end(),
                                      [](const Size& part) { return part.isConstant(1); });
    if (hasBroadcastAxis(fusion_.tensor(expr.inputs[0]))) return;
    if (has_unit && has_broadcast_[node]) return;
    if (blocked_[node] || is_part_[node] || isUnit(fusion_.tensor(found->whole), found->axis)) {
      return;
    }
    const auto old = splits_.find(node);
    if (old != splits_.end() && old->second != found->parts) return;
    const Node part = first_[found->apart] + found->axis;
    for (size_t i = 0; i < found->parts.size(); ++i) {
      const Node each = find(part + i);
      if (each == node || splits_.contains(each)) return;
    }
    for (size_t i = 0; i < found->parts.size(); ++i) is_part_[find(part + i)] = true;
    splits_.emplace(node, found->parts);
    removed_[id] = true;
  }

  const Fusion& fusion_;
  const IdVector<ValueId, std::vector<ExprId>> users_;
  const IdVector<ValueId, bool> is_output_;
  IdVector<ValueId, bool> is_in_input_;  // an output that is stored in an input
  const ElementLayouts layouts_;
  IdVector<ValueId, Node> first_;     // the node of axis 0
  mutable std::vector<Node> parent_;  // union-find
  // In the next five members, the entry of a class is at the node that identifies the class.
  std::vector<bool> blocked_;                 // the class must stay as it is
  std::vector<bool> is_part_;                 // the class is a part of an axis that is split
  std::vector<bool> has_broadcast_;           // a value has a broadcast axis in the class
  std::vector<std::optional<Size>> extents_;  // the common extent, not counting extents of 1
  std::unordered_map<Node, Sizes> splits_;    // the parts of each class that is split
  IdVector<ExprId, bool> removed_;
};

// Rebuilds a fusion with split axes. A value may exist in two forms: whole, as in the old fusion,
// and split. Expressions with isKernelOp() read split values, all others read whole values.
class AxisSplitter {
 public:
  AxisSplitter(const Fusion& fusion, const AxisClasses& classes)
      : fusion_(fusion), classes_(classes), rewriter_(fusion) {}

  Fusion run() {
    rewriter_.inputs();
    for (ExprId id : fusion_.exprs().ids()) {
      const Expression& expr = fusion_.expr(id);
      if (classes_.removes(id)) {
        stand(expr.outputs[0], split(expr.inputs[0]));
      } else if (classes_.isKernelOp(expr) && isOnSplitAxes(expr)) {
        rebuild(expr);
      } else {
        std::vector<ValueId> operands;
        for (ValueId input : expr.inputs) operands.push_back(whole(input));
        rewriter_.copyOn(id, std::move(operands));
      }
    }
    for (ValueId output : fusion_.outputs()) whole(output);
    return std::move(rewriter_).finish();
  }

 private:
  bool isOnSplitAxes(const Expression& expr) const {
    return classes_.isSplit(expr.outputs[0]) ||
           std::any_of(expr.inputs.begin(), expr.inputs.end(),
                       [&](ValueId input) { return classes_.isSplit(input); });
  }

  void stand(ValueId old, ValueId now) {
    if (classes_.isSplit(old)) {
      split_[old] = now;
    } else {
      rewriter_.stand(old, now);
    }
  }

  Sizes sizesOf(ValueId id) const {
    Sizes sizes;
    for (size_t axis = 0; axis < fusion_.tensor(id).rank(); ++axis) {
      const Sizes pieces = classes_.pieces(id, axis);
      sizes.insert(sizes.end(), pieces.begin(), pieces.end());
    }
    return sizes;
  }

  // Returns the indices that the pieces of these axes have in the split value.
  std::vector<int64_t> axesOf(ValueId id, const std::vector<int64_t>& axes) const {
    std::vector<int64_t> result;
    int64_t next = 0;
    for (size_t axis = 0; axis < fusion_.tensor(id).rank(); ++axis) {
      const bool wanted = std::count(axes.begin(), axes.end(), static_cast<int64_t>(axis)) > 0;
      for (size_t i = classes_.pieces(id, axis).size(); i > 0; --i, ++next) {
        if (wanted) result.push_back(next);
      }
    }
    return result;
  }

  // Returns the value with split axes.
  ValueId split(ValueId id) {
    if (!classes_.isSplit(id)) return rewriter_.at(id);
    const auto found = split_.find(id);
    if (found != split_.end()) return found->second;
    const Value& value = fusion_.value(id);
    rewriter_.builder().name(rewriter_.freeName(value.name + "_split")).line(value.line);
    return split_[id] = rewriter_.builder().reshape(rewriter_.at(id), sizesOf(id));
  }

  // Returns the value as it is in the old fusion.
  ValueId whole(ValueId id) {
    if (rewriter_.has(id)) return rewriter_.at(id);
    const Value& value = fusion_.value(id);
    rewriter_.builder().name(value.name).line(value.line);
    const ValueId now = rewriter_.builder().reshape(split_.at(id), value.tensor.sizes());
    rewriter_.adopt(now, id);
    return now;
  }

  void rebuild(const Expression& expr) {
    const ValueId out = expr.outputs[0];
    std::vector<ValueId> operands;
    for (ValueId input : expr.inputs) operands.push_back(split(input));
    auto attrs = expr.attrs;
    for (auto& [name, value] : attrs) {
      if (name == "sizes") value = sizesOf(out);
      if (name == "axes") {
        const ValueId owner = expr.op->kind == OpKind::Reduction ? expr.inputs[0] : out;
        value = axesOf(owner, std::get<std::vector<int64_t>>(value));
      }
      if (name == "axis") value = axesOf(out, {std::get<int64_t>(value)}).front();
    }
    const std::string& name = fusion_.value(out).name;
    // The whole value keeps the name if it is needed.
    const bool is_aside = classes_.isSplit(out) && classes_.isNeededWhole(out);
    rewriter_.builder().name(is_aside ? rewriter_.freeName(name + "_split") : name).line(expr.line);
    const ValueId now = rewriter_.builder().apply(expr.op->name, std::move(operands), attrs);
    if (classes_.isSplit(out)) {
      split_[out] = now;
    } else {
      rewriter_.adopt(now, out);
    }
  }

  const Fusion& fusion_;
  const AxisClasses& classes_;
  FusionRewriter rewriter_;
  std::unordered_map<ValueId, ValueId> split_;  // old value -> new value with split axes
};

}  // namespace

Fusion splitAxes(Fusion fusion) {
  const AxisClasses classes(fusion);
  return classes.isAnySplit() ? AxisSplitter(fusion, classes).run() : std::move(fusion);
}

}  // namespace heddle
