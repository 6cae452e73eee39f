#include "ir/passes/shift_pads.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ir/composite/composite.h"
#include "ir/graph/rewrite.h"
#include "ir/sizes/cancel_terms.h"

namespace heddle {
namespace {

// Returns the axes along which a pad only shifts elements.
std::vector<size_t> shiftedAxes(const Fusion& fusion, const Expression& expr) {
  std::vector<size_t> axes;
  if (expr.op->name != "pad") return axes;
  const TensorView& operand = fusion.tensor(expr.inputs[0]);
  const TensorView& result = fusion.tensor(expr.outputs[0]);
  if (isFloat8(operand.dtype)) return axes;
  const auto& lows = expr.attr<std::vector<Size>>("lows");
  const auto& highs = expr.attr<std::vector<Size>>("highs");
  const auto isSharded = [](const TensorView& tensor, size_t axis) {
    return tensor.sharding && axis < tensor.sharding->axes.size() &&
           !tensor.sharding->axes[axis].empty();
  };
  for (size_t axis = 0; axis < lows.size(); ++axis) {
    const bool shifts =
        lows[axis].hasScalar() && !cancelTerms(lows[axis] + highs[axis]).hasScalar();
    if (shifts && !isSharded(operand, axis) && !isSharded(result, axis)) axes.push_back(axis);
  }
  return axes;
}

class Shifter {
 public:
  explicit Shifter(const Fusion& fusion) : fusion_(fusion), rewriter_(fusion) {}

  Fusion run() {
    rewriter_.inputs();
    for (ExprId id : fusion_.exprs().ids()) {
      const Expression& expr = fusion_.expr(id);
      const std::vector<size_t> axes = shiftedAxes(fusion_, expr);
      axes.empty() ? static_cast<void>(rewriter_.copy(id)) : replace(expr, axes);
    }
    return std::move(rewriter_).finish();
  }

 private:
  FusionBuilder& builder() { return rewriter_.builder(); }

  void replace(const Expression& pad, const std::vector<size_t>& axes) {
    const ValueId old = pad.outputs[0];
    const DType dtype = fusion_.tensor(old).dtype;
    auto lows = pad.attr<std::vector<Size>>("lows");
    auto highs = pad.attr<std::vector<Size>>("highs");
    const std::vector<Size> widths = lows;
    for (size_t axis : axes) lows[axis] = highs[axis] = Size(0);
    ValueId value = rewriter_.at(pad.inputs[0]);
    ValueId fill = rewriter_.at(pad.inputs[1]);
    const auto isZero = [](const Size& size) { return size.isConstant(0); };
    if (!std::ranges::all_of(lows, isZero) || !std::ranges::all_of(highs, isZero)) {
      value = builder().pad(value, lows, highs, fill);
    }
    if (fusion_.tensor(pad.inputs[1]).dtype != dtype) fill = builder().cast(fill, dtype);
    for (size_t axis : axes) {
      const auto [inside, taken] = take(value, axis, widths[axis], fusion_.tensor(old));
      if (axis == axes.back()) builder().name(fusion_.value(old).name).line(pad.line);
      value = builder().pointwise("where", {inside, taken, fill});
    }
    rewriter_.adopt(value, old);
  }

  // Takes element j - low of `value` for each index j of the axis of the result. Returns which of
  // these elements exist, and the elements.
  std::pair<ValueId, ValueId> take(ValueId value, size_t axis, const Size& low,
                                   const TensorView& result) {
    const auto along = static_cast<int64_t>(axis);
    const ValueId index = builder().iota({result.domain[axis].extent}, 0);
    const ValueId place = builder().pointwise("sub", {index, scalarFrom(builder(), low)});
    std::vector<int64_t> others = rowMajor(result.rank());
    others.erase(others.begin() + along);
    const ValueId wide = others.empty() ? place : builder().broadcast(place, others);
    const ValueId extent = builder().sizeOf(value, along);
    const ValueId zero = builder().constant(int64_t{0});
    const ValueId inside = builder().pointwise(
        "logical_and",
        {builder().pointwise("ge", {wide, zero}), builder().pointwise("lt", {wide, extent})});
    return {inside, builder().take(value, place, along)};
  }

  const Fusion& fusion_;
  FusionRewriter rewriter_;
};

}  // namespace

Fusion shiftPads(Fusion fusion) {
  const bool has_work = std::ranges::any_of(
      fusion.exprs(), [&](const Expression& expr) { return !shiftedAxes(fusion, expr).empty(); });
  return has_work ? Shifter(fusion).run() : std::move(fusion);
}

}  // namespace heddle
