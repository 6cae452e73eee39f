#include "ir/passes/gather_one_hots.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "ir/graph/remove_dead.h"
#include "ir/graph/rewrite.h"

namespace heddle {
namespace {

// A sum that the pass replaces: the sum over `axis` of where(position == `index`, `value`, 0).
// `index` has all axes of the operand of the sum except `axis`.
struct OneHotSum {
  ValueId value;
  ValueId index;
  size_t axis;
  ValueId leaf;  // a source of `value`, with the shape of the operand of the sum
};

class OneHots {
 public:
  explicit OneHots(const Fusion& fusion) : fusion_(fusion) {}

  std::optional<OneHotSum> match(ExprId id) const {
    const Expression& sum = fusion_.expr(id);
    if (sum.op->kind != OpKind::Reduction || sum.op->reduce_op != ReduceOp::Sum) return {};
    const auto axes = sum.attr<std::vector<int64_t>>("axes");
    const ValueId operand = sum.inputs[0];
    const Expression* select = definition(operand);
    if (axes.size() != 1 || select == nullptr || select->op->name != "where") return {};
    if (!isFloat(fusion_.tensor(operand).dtype) || !isZero(select->inputs[2])) return {};
    const Expression* equal = definition(select->inputs[0]);
    if (equal == nullptr || equal->op->name != "eq") return {};
    const size_t axis = axes[0];
    for (size_t side : {0, 1}) {
      const std::optional<ValueId> index = indexOf(equal->inputs[side], axis, operand);
      if (!index || !isPosition(equal->inputs[1 - side], axis, operand)) continue;
      const std::optional<ValueId> leaf = leafOf(select->inputs[1], axis, operand);
      if (leaf) return OneHotSum{select->inputs[1], *index, axis, *leaf};
    }
    return {};
  }

  // Returns whether the value has one element along the axis.
  bool isOne(ValueId id, size_t axis) const {
    if (fusion_.value(id).is_scalar) return true;
    const TensorView& tensor = fusion_.tensor(id);
    return tensor.rank() == 0 || tensor.domain[axis].kind == IterKind::Broadcast ||
           tensor.domain[axis].extent.isConstant(1);
  }

  const Expression* definition(ValueId id) const {
    const ExprId definition = fusion_.value(id).definition;
    return definition == kNoExpr ? nullptr : &fusion_.expr(definition);
  }

 private:
  bool isZero(ValueId id) const {
    const Expression* constant = definition(id);
    if (constant == nullptr || constant->op->kind != OpKind::Constant) return false;
    const Attr& value = *constant->find("value");
    // The constant `false` also converts to 0. The pass does not recognize it and keeps the sum.
    if (const auto* number = std::get_if<double>(&value)) return *number == 0;
    const auto* number = std::get_if<int64_t>(&value);
    return number != nullptr && *number == 0;
  }

  // Returns whether the tensor has the extents of `operand`, and no axis that is stretched.
  bool hasShapeOf(ValueId operand, const TensorView& tensor) const {
    const std::vector<IterDomain>& wanted = fusion_.tensor(operand).domain;
    return std::equal(tensor.domain.begin(), tensor.domain.end(), wanted.begin(), wanted.end(),
                      [](const IterDomain& a, const IterDomain& b) {
                        return a.kind != IterKind::Broadcast && a.extent == b.extent;
                      });
  }

  // Returns the operand of `id` if `id` is a broadcast along this axis only. The operand must be an
  // index tensor without sharding, and must have the extents that `operand` has along all other
  // axes. Otherwise returns nullopt.
  std::optional<ValueId> indexOf(ValueId id, size_t axis, ValueId operand) const {
    const Expression* broadcast = definition(id);
    if (broadcast == nullptr || broadcast->op->kind != OpKind::Broadcast) return {};
    const auto axes = broadcast->attr<std::vector<int64_t>>("axes");
    if (axes.size() != 1 || static_cast<size_t>(axes[0]) != axis) return {};
    const ValueId index = broadcast->inputs[0];
    TensorView tensor = fusion_.tensor(index);
    const bool is_integer = tensor.dtype == DType::I64 || tensor.dtype == DType::I32;
    if (!is_integer || tensor.sharding) return {};
    const auto at = static_cast<ptrdiff_t>(axis);
    tensor.domain.insert(tensor.domain.begin() + at, fusion_.tensor(operand).domain[axis]);
    return hasShapeOf(operand, tensor) ? std::optional(index) : std::nullopt;
  }

  // Returns whether the value of each element of `id` is the index of the element along the axis of
  // `operand`.
  bool isPosition(ValueId id, size_t axis, ValueId operand) const {
    const Size extent = fusion_.tensor(operand).domain[axis].extent;
    const Expression* expr = definition(id);
    if (expr != nullptr && expr->op->kind == OpKind::Broadcast) {
      const auto axes = expr->attr<std::vector<int64_t>>("axes");
      const auto is_before = [&](int64_t a) { return static_cast<size_t>(a) < axis; };
      if (std::any_of(axes.begin(), axes.end(),
                      [&](int64_t a) { return static_cast<size_t>(a) == axis; })) {
        return false;
      }
      axis -= static_cast<size_t>(std::count_if(axes.begin(), axes.end(), is_before));
      expr = definition(expr->inputs[0]);
    }
    return expr != nullptr && expr->op->kind == OpKind::Iota &&
           static_cast<size_t>(expr->attr<int64_t>("axis")) == axis &&
           fusion_.tensor(expr->outputs[0]).domain[axis].extent == extent;
  }

  // Returns one source of `value` (a tensor in memory from which pointwise ops compute it). Returns
  // nullopt if the pass must not change the sum, in these cases:
  //  - An op that is neither pointwise nor a matrix product computes `value` or a part of it.
  //  - `value` has no source.
  //  - `value`, a source or an intermediate result has a sharding.
  //  - A source differs in shape from `operand`.
  std::optional<ValueId> leafOf(ValueId value, size_t axis, ValueId operand) const {
    std::optional<ValueId> leaf;
    std::vector<ValueId> next = {value};
    std::set<ValueId> seen;
    while (!next.empty()) {
      const ValueId id = next.back();
      next.pop_back();
      if (isOne(id, axis) || !seen.insert(id).second) continue;
      if (fusion_.tensor(id).sharding) return {};
      const Expression* expr = definition(id);
      if (expr != nullptr && expr->op->kind == OpKind::Pointwise) {
        next.insert(next.end(), expr->inputs.begin(), expr->inputs.end());
        continue;
      }
      const bool is_in_memory = expr == nullptr || expr->op->kind == OpKind::Matmul;
      if (!is_in_memory || !hasShapeOf(operand, fusion_.tensor(id))) return {};
      leaf = id;
    }
    return leaf;
  }

  const Fusion& fusion_;
};

class Gatherer {
 public:
  Gatherer(const Fusion& fusion, const OneHots& one_hots)
      : fusion_(fusion), one_hots_(one_hots), rewriter_(fusion) {}

  Fusion run(const std::map<ExprId, OneHotSum>& sums) {
    rewriter_.inputs();
    for (ExprId id : fusion_.exprs().ids()) {
      const auto found = sums.find(id);
      if (found == sums.end()) {
        rewriter_.copy(id);
      } else {
        gather(fusion_.expr(id), found->second);
      }
    }
    return removeDead(std::move(rewriter_).finish());
  }

 private:
  FusionBuilder& builder() { return rewriter_.builder(); }

  void gather(const Expression& sum, const OneHotSum& one) {
    picked_.clear();
    const auto axis = static_cast<int64_t>(one.axis);
    index_ = builder().broadcast(rewriter_.at(one.index), {axis});
    const ValueId value = pick(one.value, one.axis);
    const ValueId extent = builder().sizeOf(rewriter_.at(one.leaf), axis);
    const ValueId index =
        fusion_.tensor(one.index).dtype == DType::I64 ? index_ : builder().cast(index_, DType::I64);
    const ValueId low = builder().pointwise("ge", {index, builder().constant(int64_t{0})});
    const ValueId high = builder().pointwise("lt", {index, extent});
    const ValueId inside = builder().pointwise("logical_and", {low, high});
    const ValueId zero = builder().constant(0.0);
    const ValueId old = sum.outputs[0];
    const TensorView& wanted = fusion_.tensor(old);
    const bool keeps = wanted.rank() == fusion_.tensor(sum.inputs[0]).rank();
    if (keeps) builder().name(fusion_.value(old).name).line(sum.line);
    ValueId result = builder().pointwise("where", {inside, value, zero});
    if (!keeps) {
      builder().name(fusion_.value(old).name).line(sum.line);
      result = builder().reshape(result, wanted.sizes());
    }
    rewriter_.adopt(result, old);
  }

  // Returns the elements of `id` that the index tensor selects along the axis. The result has one
  // element along the axis.
  ValueId pick(ValueId id, size_t axis) {
    if (one_hots_.isOne(id, axis)) return rewriter_.at(id);
    const auto found = picked_.find(id);
    if (found != picked_.end()) return found->second;
    const Expression* expr = one_hots_.definition(id);
    ValueId result = kNoValue;
    if (expr != nullptr && expr->op->kind == OpKind::Pointwise) {
      std::vector<ValueId> operands;
      for (ValueId input : expr->inputs) operands.push_back(pick(input, axis));
      result = builder().apply(expr->op->name, std::move(operands), expr->attrs);
    } else {
      result = builder().takeAlongAxis(rewriter_.at(id), index_, static_cast<int64_t>(axis));
    }
    picked_.emplace(id, result);
    return result;
  }

  const Fusion& fusion_;
  const OneHots& one_hots_;
  FusionRewriter rewriter_;
  ValueId index_ = kNoValue;
  std::map<ValueId, ValueId> picked_;
};

}  // namespace

Fusion gatherOneHots(Fusion fusion) {
  const OneHots one_hots(fusion);
  std::map<ExprId, OneHotSum> sums;
  for (ExprId id : fusion.exprs().ids()) {
    if (const std::optional<OneHotSum> found = one_hots.match(id)) sums.emplace(id, *found);
  }
  return sums.empty() ? std::move(fusion) : Gatherer(fusion, one_hots).run(sums);
}

}  // namespace heddle
