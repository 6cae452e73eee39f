#include "ir/passes/views/pick.h"

#include <algorithm>

#include "ir/composite/terms.h"

namespace heddle {
namespace {

using Sizes = std::vector<Size>;

bool hasScalar(const Sizes& sizes) {
  return std::any_of(sizes.begin(), sizes.end(), [](const Size& size) { return size.hasScalar(); });
}

std::vector<int64_t> stepsOf(const Expression& slice) {
  const size_t rank = slice.attr<Sizes>("starts").size();
  return slice.find("steps") == nullptr ? std::vector<int64_t>(rank, 1)
                                        : slice.attr<std::vector<int64_t>>("steps");
}

bool changes(const Fusion& fusion, const Expression& pick, size_t axis) {
  if (pick.op->kind == OpKind::Slice) {
    const Size& extent = fusion.tensor(pick.inputs[0]).domain[axis].extent;
    return !pick.attr<Sizes>("starts")[axis].isConstant(0) ||
           pick.attr<Sizes>("stops")[axis] != extent || stepsOf(pick)[axis] != 1;
  }
  if (pick.op->name == "pad") {
    return !pick.attr<Sizes>("lows")[axis].isConstant(0) ||
           !pick.attr<Sizes>("highs")[axis].isConstant(0);
  }
  if (pick.op->name == "take") return pick.axis() == axis;
  const auto& flipped = pick.attr<std::vector<int64_t>>("axes");
  return std::find(flipped.begin(), flipped.end(), static_cast<int64_t>(axis)) != flipped.end();
}

// Returns `of_operand`, which has one number per axis of the operand of a pick, rearranged for a
// value with these picked axes. An axis along which the pick changes nothing gets `whole`.
template <class T>
std::vector<T> rearranged(const std::vector<T>& of_operand, const PickedAxes& axes, T whole) {
  std::vector<T> result;
  for (const int64_t axis : axes) {
    result.push_back(axis == kWhole ? whole : of_operand[static_cast<size_t>(axis)]);
  }
  return result;
}

ValueId appendSlice(FusionBuilder& builder, const Expression& pick, ValueId value,
                    const TensorView& tensor, const PickedAxes& axes) {
  Sizes stops = rearranged(pick.attr<Sizes>("stops"), axes, Size(0));
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] == kWhole) stops[i] = tensor.domain[i].extent;
  }
  return builder.slice(value, rearranged(pick.attr<Sizes>("starts"), axes, Size(0)), stops,
                       rearranged<int64_t>(stepsOf(pick), axes, 1));
}

}  // namespace

bool isPick(const Fusion& fusion, const Expression& expr, bool is_in_cat) {
  if (expr.op->name == "flip") return true;
  if (expr.op->kind == OpKind::Slice) {
    return !hasScalar(expr.attr<Sizes>("starts")) && !hasScalar(expr.attr<Sizes>("stops"));
  }
  if (expr.op->name == "pad") {
    return !isFloat8(fusion.tensor(expr.inputs[0]).dtype) && !hasScalar(expr.attr<Sizes>("lows")) &&
           !hasScalar(expr.attr<Sizes>("highs"));
  }
  return is_in_cat && expr.op->name == "take";
}

// Two slices are disjoint if one ends before the other begins, along some axis.
bool areDisjointSlices(const Expression& a, const Expression& b) {
  if (a.op->kind != OpKind::Slice || b.op->kind != OpKind::Slice) return false;
  const auto isBefore = [](const Size& stop, const Size& start) {
    const bool known = stop.isConstant() && start.isConstant();
    return stop == start || (known && stop.constant() <= start.constant());
  };
  const auto &starts_a = a.attr<Sizes>("starts"), &stops_a = a.attr<Sizes>("stops");
  const auto &starts_b = b.attr<Sizes>("starts"), &stops_b = b.attr<Sizes>("stops");
  for (size_t axis = 0; axis < starts_a.size(); ++axis) {
    if (isBefore(stops_a[axis], starts_b[axis]) || isBefore(stops_b[axis], starts_a[axis])) {
      return true;
    }
  }
  return false;
}

PickedAxes pickedAxesOf(const Fusion& fusion, const Expression& pick) {
  PickedAxes axes;
  for (size_t axis = 0; axis < fusion.tensor(pick.inputs[0]).rank(); ++axis) {
    axes.push_back(changes(fusion, pick, axis) ? static_cast<int64_t>(axis) : kWhole);
  }
  return axes;
}

bool isWhole(const PickedAxes& axes) {
  return std::all_of(axes.begin(), axes.end(), [](int64_t axis) { return axis == kWhole; });
}

std::optional<PickedAxes> operandAxes(const Fusion& fusion, const Expression& expr, ValueId operand,
                                      const PickedAxes& axes) {
  const TensorView& tensor = fusion.tensor(operand);
  PickedAxes result;
  if (expr.op->kind == OpKind::Pointwise) {
    if (tensor.rank() != 0 && tensor.rank() != axes.size()) return std::nullopt;
    const TensorView& whole = fusion.tensor(expr.outputs[0]);
    for (size_t i = 0; i < tensor.rank(); ++i) {
      const bool is_repeated = isUnitAxis(tensor, i) && !isUnitAxis(whole, i);
      result.push_back(is_repeated ? kWhole : axes[i]);
    }
    return result;
  }
  const bool removes_axes = expr.op->kind == OpKind::Reduction && tensor.rank() > axes.size();
  if (expr.op->kind != OpKind::Broadcast && expr.op->kind != OpKind::Reduction) return std::nullopt;
  const auto& changed = expr.attr<std::vector<int64_t>>("axes");
  const size_t rank = std::max(axes.size(), tensor.rank());
  size_t next = 0;  // of `axes`
  for (size_t i = 0; i < rank; ++i) {
    const bool is_changed = std::find(changed.begin(), changed.end(), i) != changed.end();
    const int64_t axis = is_changed && removes_axes ? kWhole : axes[next++];
    if (is_changed && axis != kWhole) return std::nullopt;
    if (!is_changed || expr.op->kind == OpKind::Reduction) result.push_back(axis);
  }
  return result;
}

ValueId appendPick(const Fusion& from, FusionRewriter& rewriter, const Expression& pick,
                   ValueId old, const PickedAxes& axes) {
  if (isWhole(axes)) return rewriter.at(old);
  FusionBuilder& builder = rewriter.builder();
  const Value& value = from.value(old);
  const ValueId now = rewriter.at(old);
  const auto nameAs = [&](const char* ending) {
    builder.name(rewriter.freeName(value.name + ending)).line(value.line);
  };
  if (pick.op->kind == OpKind::Slice) {
    nameAs("_sliced");
    return appendSlice(builder, pick, now, value.tensor, axes);
  }
  if (pick.op->name == "flip") {
    std::vector<int64_t> flipped;
    for (size_t i = 0; i < axes.size(); ++i) {
      if (axes[i] != kWhole) flipped.push_back(static_cast<int64_t>(i));
    }
    nameAs("_flipped");
    return builder.flip(now, flipped);
  }
  if (pick.op->name == "take") {
    const auto along =
        std::find_if(axes.begin(), axes.end(), [](int64_t a) { return a != kWhole; });
    nameAs("_taken");
    return builder.take(now, rewriter.at(pick.inputs[1]), along - axes.begin());
  }
  const ValueId fill = builder.constant(false);
  nameAs("_padded");
  return builder.pad(now, rearranged(pick.attr<Sizes>("lows"), axes, Size(0)),
                     rearranged(pick.attr<Sizes>("highs"), axes, Size(0)), fill);
}

ValueId appendIsInside(const Fusion& from, FusionRewriter& rewriter, const Expression& pad) {
  FusionBuilder& builder = rewriter.builder();
  ValueId inside = kNoValue;
  const auto require = [&](ValueId condition) {
    inside = inside == kNoValue ? condition : builder.pointwise("logical_and", {inside, condition});
  };
  const auto &lows = pad.attr<Sizes>("lows"), &highs = pad.attr<Sizes>("highs");
  const Sizes sizes = from.tensor(pad.outputs[0]).sizes();
  for (size_t axis = 0; axis < lows.size(); ++axis) {
    if (lows[axis].isConstant(0) && highs[axis].isConstant(0)) continue;
    const ValueId place = composite::positions(builder, sizes, static_cast<int64_t>(axis)).id;
    if (!lows[axis].isConstant(0)) {
      require(builder.pointwise("ge", {place, scalarFrom(builder, lows[axis])}));
    }
    if (!highs[axis].isConstant(0)) {
      const Size end = sizes[axis] - highs[axis];
      require(builder.pointwise("lt", {place, scalarFrom(builder, end)}));
    }
  }
  return inside;
}

}  // namespace heddle
