#include "ir/passes/orders/infer_orders.h"

#include <algorithm>

#include "ir/analysis/kernel_rules.h"
#include "ir/analysis/memory_order.h"
#include "ir/passes/orders/followed_order.h"
#include "ir/passes/orders/order_notes.h"
#include "ir/passes/orders/order_refusals.h"

namespace heddle {
namespace {

class OrderInferrer {
 public:
  explicit OrderInferrer(const Fusion& fusion)
      : fusion_(fusion),
        result_(fusion),
        refusals_(fusion),
        known_(fusion.values().size()),
        layouts_(fusion.values().size()) {}

  Fusion run() {
    for (ValueId id : fusion_.inputs()) {
      if (fusion_.value(id).is_scalar) continue;
      known_[id] = knownInput(id);
      layouts_[id] = elementLayout(result_, id, layouts_);
    }
    for (const Expression& expr : fusion_.exprs()) {
      if (isHostScalar(fusion_, expr)) continue;
      const ValueId out = expr.outputs[0];
      known_[out] = knownResult(expr);
      layouts_[out] = elementLayout(result_, out, layouts_);
    }
    addOrderNotes(result_, notes_);
    return std::move(result_);
  }

 private:
  std::vector<bool> realAxes(ValueId id) const {
    const TensorView& tensor = fusion_.tensor(id);
    std::vector<bool> axes;
    for (size_t axis = 0; axis < tensor.rank(); ++axis) axes.push_back(!isUnitAxis(tensor, axis));
    return axes;
  }

  KnownOrder knownInput(ValueId id) const {
    const Value& value = fusion_.value(id);
    const auto& observed = value.tensor.layout.observed;
    return {observed ? observed->order : rowMajor(value.tensor.rank()), realAxes(id), true,
            "input %" + value.name};
  }

  KnownOrder knownResult(const Expression& expr) {
    const ValueId out = expr.outputs[0];
    switch (expr.op->kind) {
      case OpKind::Permute:
      case OpKind::Slice:
        return knownView(expr);
      case OpKind::Reshape:
        return knownReshape(expr);
      default:
        break;
    }
    KnownOrder known = orderAfter(fusion_, expr, known_);
    const TensorView& tensor = fusion_.tensor(out);
    if (tensor.hasFixedOrder() || tensor.layout.hint ||
        (expr.op->kind == OpKind::Set && !isOtherName(fusion_, expr))) {
      known.order = tensor.allocationOrder();
      known.is_followed = tensor.layout.required.has_value();
      known.from = "required order of %" + fusion_.value(out).name;
      return known;
    }
    if (expr.op->kind == OpKind::Expand) keepPositions(expr, known);
    if (!mayHint(out, known)) known.order = rowMajor(tensor.rank());
    return known;
  }

  // Unless orderAfter() chooses row-major order, it makes the axes that an expand repeats the
  // outermost axes. If a reader refuses this order, this function tries a second order: each
  // repeated axis directly follows the preceding logical axis. It chooses the second order if every
  // reader accepts it. For example, code that enlarges an image repeats pixels along a new axis,
  // and a reshape then merges this axis with the axis before it.
  void keepPositions(const Expression& expand, KnownOrder& known) const {
    const ValueId out = expand.outputs[0];
    const TensorView& in = fusion_.tensor(expand.inputs[0]);
    if (in.rank() != known.order.size() || refusals_.whyNot(out, known.order).empty()) return;
    AxisOrder kept;
    const auto is_repeated = [&](int64_t axis) {
      return isUnitAxis(in, static_cast<size_t>(axis)) &&
             !isUnitAxis(fusion_.tensor(out), static_cast<size_t>(axis));
    };
    std::copy_if(known.order.begin(), known.order.end(), std::back_inserter(kept),
                 [&](int64_t axis) { return !is_repeated(axis); });
    for (int64_t axis = 0; axis < static_cast<int64_t>(known.order.size()); ++axis) {
      if (!is_repeated(axis)) continue;
      const auto before = std::find(kept.begin(), kept.end(), axis - 1);
      kept.insert(before == kept.end() ? kept.begin() : before + 1, axis);
    }
    if (refusals_.whyNot(out, kept).empty()) known.order = kept;
  }

  // Returns false without a note if the order is row-major or results may not follow it. Otherwise
  // adds a note. Then sets the hint of the value and returns true if the op that computes the value
  // and all readers accept the order. Returns false if one of them refuses it.
  bool mayHint(ValueId id, const KnownOrder& known) {
    const Value& value = fusion_.value(id);
    if (sameOrder(known.order, rowMajor(value.tensor.rank()), value.tensor)) return false;
    if (!known.is_followed) return false;
    const std::string why = refusals_.whyNot(id, known.order);
    notes_.push_back({value.name, known.order, known.from, why});
    if (why.empty()) result_.layout(id).hint = known.order;
    return why.empty();
  }

  KnownOrder knownView(const Expression& expr) const {
    KnownOrder known = known_[expr.inputs[0]];
    if (expr.op->kind == OpKind::Slice) {
      known.in_memory = realAxes(expr.outputs[0]);
      return known;
    }
    const auto& axes = expr.attr<std::vector<int64_t>>("axes");
    const std::vector<bool> in_memory = known.in_memory;
    for (size_t i = 0; i < axes.size(); ++i) {
      known.in_memory[i] = in_memory[axes[i]];
    }
    for (int64_t& axis : known.order) {
      axis = std::find(axes.begin(), axes.end(), axis) - axes.begin();
    }
    return known;
  }

  // The result of a reshape that is a view has the order of the operand's memory. The readers of
  // the result cannot change this order. OrderRefusals has already asked them, when this pass chose
  // the order of the operand. The result of any other reshape is row-major, because the reshape
  // reads a row-major copy.
  KnownOrder knownReshape(const Expression& expr) const {
    const ValueId out = expr.outputs[0];
    const ValueId in = expr.inputs[0];
    KnownOrder known{rowMajor(fusion_.tensor(out).rank()), realAxes(out), known_[in].is_followed,
                     known_[in].from};
    if (layouts_[in] && isReshapeView(fusion_, expr, *layouts_[in])) {
      known.order = layoutOfView(fusion_, expr, *layouts_[in]).order;
    }
    return known;
  }

  const Fusion& fusion_;
  Fusion result_;
  OrderRefusals refusals_;
  IdVector<ValueId, KnownOrder> known_;
  ElementLayouts layouts_;  // with the hints of this pass
  std::vector<OrderNote> notes_;
};

}  // namespace

Fusion inferOrders(const Fusion& fusion) { return OrderInferrer(fusion).run(); }

}  // namespace heddle
