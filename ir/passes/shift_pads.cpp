#include "ir/passes/shift_pads.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/composite/composite.h"
#include "ir/graph/rewrite.h"
#include "ir/graph/size_scalars.h"
#include "ir/passes/sharding/user_sharded_axes.h"
#include "ir/sizes/cancel_terms.h"

namespace heddle {
namespace {

// The lowest and the highest value that a size can have, computed without overflow.
struct WidthRange {
  double low, high;
};

constexpr double kOver = 9223372036854775808.0;  // 2^63, the smallest number above all i64

// Computes the ranges of sizes from the types of their symbols.
class WidthRanges {
 public:
  explicit WidthRanges(const Fusion& fusion) {
    for (ValueId id : fusion.inputs()) {
      const Value& input = fusion.value(id);
      if (!mayDecideSizes(input.tensor)) continue;
      const double over = std::ldexp(1.0, static_cast<int>(8 * sizeOf(input.tensor.dtype)) - 1);
      const bool is_short = over < kOver;  // covers signed and unsigned types
      scalars_[scalarSymbol(input.name)] = {-over, is_short ? 2 * over : over};
    }
  }

  // Returns whether a kernel can use the size as the low width of a pad that only shifts. The
  // kernel computes the size as a 64-bit integer that wraps at overflow. In a run without overflow,
  // the integer equals the size. In every other run, the integer must be at least 2^62 or at most
  // -2^62. It then shifts all elements out of the result, like the exact width.
  bool mayWrap(const Size& size) {
    visits_ = 64;
    const std::optional<WidthRange> range = rangeOf(size);
    return range && range->low >= -1.5 * kOver && range->high <= 1.5 * kOver;
  }

 private:
  // Returns the range of the size, computed without overflow. Returns nullopt if the size has too
  // many operators and operands, or contains a division, a remainder or an open size (given(a, b)
  // in ir/base/size_symbols.h). Also returns nullopt if an operand of a min or max may overflow:
  // the wrapped result would not equal the exact one modulo 2^64.
  std::optional<WidthRange> rangeOf(const Size& size) {
    if (--visits_ < 0) return std::nullopt;
    if (size.isConstant()) {
      const auto value = static_cast<double>(size.constant());
      return WidthRange{value, value};
    }
    if (size.kind() == Size::Kind::Symbol) {
      const auto scalar = scalars_.find(size.symbolName());
      return scalar != scalars_.end() ? scalar->second : WidthRange{0, kMostExtent};
    }
    const std::optional<WidthRange> a = rangeOf(size.lhs()), b = rangeOf(size.rhs());
    if (!a || !b) return std::nullopt;
    switch (size.kind()) {
      case Size::Kind::Add:
        return WidthRange{a->low + b->low, a->high + b->high};
      case Size::Kind::Sub:
        return WidthRange{a->low - b->high, a->high - b->low};
      case Size::Kind::Mul: {
        const auto [low, high] =
            std::minmax({a->low * b->low, a->low * b->high, a->high * b->low, a->high * b->high});
        return WidthRange{low, high};
      }
      case Size::Kind::Min:
      case Size::Kind::Max: {
        if (!isExact(size.lhs(), *a) || !isExact(size.rhs(), *b)) return std::nullopt;
        if (size.kind() == Size::Kind::Min) {
          return WidthRange{std::min(a->low, b->low), std::min(a->high, b->high)};
        }
        return WidthRange{std::max(a->low, b->low), std::max(a->high, b->high)};
      }
      default:
        return std::nullopt;
    }
  }

  static bool isExact(const Size& size, const WidthRange& range) {
    const bool is_leaf = size.isConstant() || size.kind() == Size::Kind::Symbol;
    return is_leaf || (range.low > -kOver / 2 && range.high < kOver / 2);
  }

  static constexpr double kMostExtent = 281474976710656.0;  // 2^48, more than memory has
  std::map<std::string, WidthRange> scalars_;
  int visits_ = 0;  // operators and operands that rangeOf() may still visit
};

// Finds the axes along which pads only shift elements.
class ShiftedAxes {
 public:
  explicit ShiftedAxes(const Fusion& fusion)
      : fusion_(fusion), ranges_(fusion), may_be_sharded_(axesThatMayBeSharded(fusion)) {}

  std::vector<size_t> of(const Expression& expr) {
    std::vector<size_t> axes;
    if (expr.op->name != "pad" || isFloat8(fusion_.tensor(expr.inputs[0]).dtype)) return axes;
    const auto& lows = expr.attr<std::vector<Size>>("lows");
    const auto& highs = expr.attr<std::vector<Size>>("highs");
    for (size_t axis = 0; axis < lows.size(); ++axis) {
      const bool shifts =
          lows[axis].hasScalar() && !cancelTerms(lows[axis] + highs[axis]).hasScalar();
      if (shifts && ranges_.mayWrap(lows[axis]) && !mayBeSharded(expr.inputs[0], axis) &&
          !mayBeSharded(expr.outputs[0], axis)) {
        axes.push_back(axis);
      }
    }
    return axes;
  }

 private:
  bool mayBeSharded(ValueId id, size_t axis) const {
    return axis < may_be_sharded_[id].size() && may_be_sharded_[id][axis];
  }

  const Fusion& fusion_;
  WidthRanges ranges_;
  IdVector<ValueId, std::vector<bool>> may_be_sharded_;
};

class Shifter {
 public:
  Shifter(const Fusion& fusion, ShiftedAxes shifted)
      : fusion_(fusion), rewriter_(fusion), shifted_(std::move(shifted)) {}

  Fusion run() {
    rewriter_.inputs();
    for (ExprId id : fusion_.exprs().ids()) {
      const Expression& expr = fusion_.expr(id);
      const std::vector<size_t> axes = shifted_.of(expr);
      axes.empty() ? static_cast<void>(rewriter_.copy(id)) : replace(expr, axes);
    }
    return std::move(rewriter_).finish();
  }

 private:
  FusionBuilder& builder() { return rewriter_.builder(); }

  void replace(const Expression& pad, const std::vector<size_t>& axes) {
    builder().line(pad.line);
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
      if (axis == axes.back()) builder().name(fusion_.value(old).name);
      value = builder().pointwise("where", {inside, taken, fill});
    }
    rewriter_.adopt(value, old);
  }

  // Appends expressions that take element j - low of `value` for each index j along the axis of the
  // result. Returns two values: which of these elements exist, and the elements.
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
  ShiftedAxes shifted_;
};

}  // namespace

Fusion shiftPads(Fusion fusion) {
  const auto mayShift = [](const Expression& expr) {
    if (expr.op->name != "pad") return false;
    const auto hasScalar = [](const Size& width) { return width.hasScalar(); };
    return std::ranges::any_of(expr.attr<std::vector<Size>>("lows"), hasScalar);
  };
  if (std::ranges::none_of(fusion.exprs(), mayShift)) return fusion;
  ShiftedAxes shifted(fusion);
  const auto isReplaced = [&](const Expression& expr) { return !shifted.of(expr).empty(); };
  if (std::ranges::none_of(fusion.exprs(), isReplaced)) return fusion;
  return Shifter(fusion, std::move(shifted)).run();
}

}  // namespace heddle
