#include "ir/passes/take_generated.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "ir/analysis/indexed_axes.h"
#include "ir/graph/remove_dead.h"
#include "ir/graph/rewrite.h"

namespace heddle {
namespace {

// The largest number of expressions that compute a generated value.
constexpr size_t kMostExprs = 64;

class Generated {
 public:
  explicit Generated(const Fusion& fusion)
      : fusion_(fusion), users_(fusion.users()), is_output_(fusion.outputFlags()) {}

  bool isReplaced(const Expression& take) const {
    if (take.op->name != "take" && take.op->name != "take_along_axis") return false;
    const ValueId operand = take.inputs[0];
    const TensorView& result = fusion_.tensor(take.outputs[0]);
    if (result.sharding || fusion_.tensor(take.inputs[1]).sharding) return false;
    for (size_t axis = 0; axis < result.rank(); ++axis) {
      if (isUnitAxis(result, axis)) return false;
    }
    return isGenerated(operand) && !isGenerated(take.inputs[1]) && onlyKernelsRead(operand);
  }

  const Expression* definition(ValueId id) const {
    const ExprId definition = fusion_.value(id).definition;
    return definition == kNoExpr ? nullptr : &fusion_.expr(definition);
  }

 private:
  bool isGenerated(ValueId value) const {
    std::vector<ValueId> next = {value};
    std::set<ValueId> seen;
    while (!next.empty()) {
      const ValueId id = next.back();
      next.pop_back();
      if (fusion_.value(id).is_scalar || !seen.insert(id).second) continue;
      const Expression* expr = definition(id);
      const bool fits = expr != nullptr && computes(expr->op->kind) && !fusion_.tensor(id).sharding;
      if (!fits || seen.size() > kMostExprs) return false;
      next.insert(next.end(), expr->inputs.begin(), expr->inputs.end());
    }
    return true;
  }

  static bool computes(OpKind kind) {
    return kind == OpKind::Iota || kind == OpKind::Full || kind == OpKind::Pointwise ||
           kind == OpKind::Broadcast || kind == OpKind::Expand;
  }

  bool onlyKernelsRead(ValueId id) const {
    return !is_output_[id] && std::all_of(users_[id].begin(), users_[id].end(), [&](ExprId user) {
      const OpKind kind = fusion_.expr(user).op->kind;
      return computes(kind) || kind == OpKind::Reduction || kind == OpKind::Index ||
             kind == OpKind::SizeOf;
    });
  }

  const Fusion& fusion_;
  const IdVector<ValueId, std::vector<ExprId>> users_;
  const IdVector<ValueId, bool> is_output_;
};

// Writes the expressions that replace a take. Their results have the rank of the result of the
// take. A result that does not depend on an axis has one element along it.
class TakeWriter {
 public:
  TakeWriter(const Fusion& fusion, const Generated& generated, FusionRewriter& rewriter,
             const Expression& take)
      : fusion_(fusion),
        generated_(generated),
        rewriter_(rewriter),
        take_(take),
        places_(indexedAxesOf(fusion, take)),
        rank_(fusion.tensor(take.outputs[0]).rank()) {}

  void write() {
    const ValueId operand = take_.inputs[0];
    const DType dtype = fusion_.tensor(operand).dtype;
    const Size extent = fusion_.tensor(operand).domain[take_.axis()].extent;
    std::vector<int> axes;
    for (size_t i = 0; i < places_.size(); ++i) axes.push_back(static_cast<int>(i));
    const ValueId value = pick(operand, axes);
    const ValueId index = indexAlong(take_.axis());
    const ValueId end = extent.isConstant()
                            ? b().constant(extent.constant())
                            : b().sizeOf(rewriter_.at(operand), static_cast<int64_t>(take_.axis()));
    const ValueId low = b().pointwise("ge", {index, b().constant(int64_t{0})});
    const ValueId high = b().pointwise("lt", {index, end});
    const ValueId valid = b().pointwise("logical_and", {low, high});
    const Value& old = fusion_.value(take_.outputs[0]);
    // `fill` has the extents of the result. The result of `where` therefore has no broadcast axis,
    // even if `value` and `valid` have one element along an axis.
    const ValueId fill = b().full(b().constant(missing(dtype)), old.tensor.sizes(), dtype);
    b().name(old.name).line(take_.line);
    rewriter_.adopt(b().pointwise("where", {valid, value, fill}), take_.outputs[0]);
  }

 private:
  FusionBuilder& b() { return rewriter_.builder(); }

  static Scalar missing(DType dtype) {
    if (isFloat(dtype)) return std::numeric_limits<double>::quiet_NaN();
    return dtype == DType::Bool ? Scalar(false) : Scalar(int64_t{0});
  }

  // Returns the index of the selected element along an axis of the operand.
  ValueId indexAlong(size_t axis) {
    const auto found = index_.find(axis);
    if (found != index_.end()) return found->second;
    ValueId index = kNoValue;
    size_t first = 0;
    size_t count = 1;
    if (places_[axis].output_axis == IndexedAxis::kByValue) {
      index = rewriter_.at(take_.inputs[1]);
      const TensorView& tensor = fusion_.tensor(take_.inputs[1]);
      if (tensor.dtype != DType::I64) index = b().cast(index, DType::I64);
      count = tensor.rank();
      first = take_.op->name == "take" ? axis : 0;
    } else {
      first = static_cast<size_t>(places_[axis].output_axis);
      index = b().iota({fusion_.tensor(take_.outputs[0]).domain[first].extent}, 0);
    }
    std::vector<int64_t> added;
    for (size_t i = 0; i < rank_; ++i) {
      if (i < first || i >= first + count) added.push_back(static_cast<int64_t>(i));
    }
    if (!added.empty()) index = b().broadcast(index, added);
    return index_[axis] = index;
  }

  // Returns the elements of `id` at the selected indices. The index along axis i of `id` is the
  // selected index along axis axes[i] of the take's operand, or 0 if axes[i] is -1.
  ValueId pick(ValueId id, const std::vector<int>& axes) {
    if (fusion_.value(id).is_scalar) return rewriter_.at(id);
    const auto found = picked_.find({id, axes});
    if (found != picked_.end()) return found->second;
    const Expression& expr = *generated_.definition(id);
    const ValueId result = compute(id, expr, axes);
    picked_.emplace(std::pair(id, axes), result);
    return result;
  }

  ValueId compute(ValueId id, const Expression& expr, const std::vector<int>& axes) {
    const std::vector<Size> ones(rank_, Size(1));
    switch (expr.op->kind) {
      case OpKind::Iota: {
        const int axis = axes[expr.axis()];
        if (axis < 0) return b().full(b().constant(int64_t{0}), ones, DType::I64);
        return indexAlong(static_cast<size_t>(axis));
      }
      case OpKind::Full:
        return b().full(rewriter_.at(expr.inputs[0]), ones, fusion_.tensor(id).dtype);
      case OpKind::Broadcast: {
        const auto& added = expr.attr<std::vector<int64_t>>("axes");
        std::vector<int> kept;
        for (size_t i = 0; i < axes.size(); ++i) {
          const bool is_new =
              std::binary_search(added.begin(), added.end(), static_cast<int64_t>(i));
          if (!is_new) kept.push_back(axes[i]);
        }
        return pick(expr.inputs[0], kept);
      }
      case OpKind::Expand:
        return pick(expr.inputs[0], axesOf(expr.inputs[0], id, axes));
      default: {
        std::vector<ValueId> operands;
        for (ValueId input : expr.inputs) {
          operands.push_back(pick(input, axesOf(input, id, axes)));
        }
        return b().apply(expr.op->name, std::move(operands), expr.attrs);
      }
    }
  }

  // Returns the list `axes` for an operand of the expression that computes `result`. If the operand
  // has one element along an axis and `result` has more, the entry becomes -1 (index 0).
  std::vector<int> axesOf(ValueId operand, ValueId result, std::vector<int> axes) const {
    if (fusion_.value(operand).is_scalar) return {};
    for (size_t i = 0; i < axes.size(); ++i) {
      const bool stretches =
          isUnitAxis(fusion_.tensor(operand), i) && !isUnitAxis(fusion_.tensor(result), i);
      if (stretches) axes[i] = -1;
    }
    return axes;
  }

  const Fusion& fusion_;
  const Generated& generated_;
  FusionRewriter& rewriter_;
  const Expression& take_;
  const std::vector<IndexedAxis> places_;
  const size_t rank_;
  std::map<size_t, ValueId> index_;  // per axis of the operand
  std::map<std::pair<ValueId, std::vector<int>>, ValueId> picked_;
};

}  // namespace

Fusion takeGenerated(Fusion fusion) {
  const Generated generated(fusion);
  std::set<ExprId> takes;
  for (ExprId id : fusion.exprs().ids()) {
    if (generated.isReplaced(fusion.expr(id))) takes.insert(id);
  }
  if (takes.empty()) return fusion;
  FusionRewriter rewriter(fusion);
  rewriter.inputs();
  for (ExprId id : fusion.exprs().ids()) {
    if (!takes.contains(id)) {
      rewriter.copy(id);
      continue;
    }
    TakeWriter(fusion, generated, rewriter, fusion.expr(id)).write();
  }
  return removeDead(std::move(rewriter).finish());
}

}  // namespace heddle
