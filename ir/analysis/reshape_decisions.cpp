#include "ir/analysis/reshape_decisions.h"

#include <algorithm>
#include <optional>

#include "ir/analysis/reshape_order.h"
#include "ir/base/check.h"
#include "ir/sizes/size_quotient.h"

namespace heddle {
namespace {

// Says into how many parts operand axis i (`in[i]`) and result axis o (`out[o]`) are split. The
// parts of all operand axes, in order, are the parts of all result axes.
struct Parts {
  std::vector<int64_t> in;
  std::vector<int64_t> out;
};

// Splits axes until operand and result have the same parts. Returns nullopt if no splits exist.
// Requires equal products, and no extent of 0.
std::optional<Parts> commonParts(std::vector<int64_t> in, std::vector<int64_t> out) {
  Parts parts{std::vector<int64_t>(in.size(), 0), std::vector<int64_t>(out.size(), 0)};
  size_t i = 0, o = 0;
  while (i < in.size() && o < out.size()) {
    int64_t& a = in[i];
    int64_t& b = out[o];
    if (a != b && (a < b ? b % a : a % b) != 0) return std::nullopt;
    ++parts.in[i];
    ++parts.out[o];
    const bool ends_in = a <= b, ends_out = b <= a;
    if (a < b) b /= a;
    if (b < a) a /= b;
    if (ends_in) ++i;
    if (ends_out) ++o;
  }
  // The remaining axes have one element. Remaining axes of the operand count as parts of the last
  // axis of the result, and the reverse.
  for (; i < in.size(); ++i) {
    ++parts.in[i];
    ++parts.out.back();
  }
  for (; o < out.size(); ++o) {
    ++parts.out[o];
    ++parts.in.back();
  }
  return parts;
}

class ReshapeDecider {
 public:
  ReshapeDecider(const TensorView& in, const TensorView& out, const SizeBindings& sizes)
      : in_(in), out_(out), sizes_(sizes) {}

  ReshapeDecision run(std::string value) {
    ReshapeDecision result{std::move(value), ReshapeDecision::Kind::Steps, {}, {}};
    try {
      if (!decide(result)) return {result.value, ReshapeDecision::Kind::Empty, {}, {}};
    } catch (const UserError&) {  // a size has no value, or the sizes do not fit
      return {result.value, ReshapeDecision::Kind::Open, {}, {}};
    }
    // Steps that all split, or all merge, need no second reshape.
    if (result.first.empty()) std::swap(result.first, result.then);
    return result;
  }

 private:
  // Decides the steps of the reshape, and adds them to `result`. Returns false if values of sizes
  // would decide the steps, but the tensor has no elements (ReshapeDecision::Kind::Empty).
  bool decide(ReshapeDecision& result) {
    int64_t middle = 0;  // number of axes so far in the result of the first steps
    for (const ReshapeGroup& group : reshapeGroups(in_, out_)) {
      const auto from = static_cast<int64_t>(group.in_end - group.in_begin);
      const auto to = static_cast<int64_t>(group.out_end - group.out_begin);
      const auto at = static_cast<int64_t>(group.in_begin);
      if (from <= 1 || to <= 1) {
        const bool merges = from > to;
        const AxisStep step{merges ? middle : at, from, to};
        if (from != to) (merges ? result.then : result.first).push_back(step);
        middle += std::max(from, to);
        continue;
      }
      if (!decideGroup(group, result, middle)) return false;
    }
    return true;
  }

  bool decideGroup(const ReshapeGroup& group, ReshapeDecision& result, int64_t& middle) {
    const auto values = [&](const TensorView& tensor, size_t begin, size_t end) {
      std::vector<int64_t> list;
      for (size_t i = begin; i < end; ++i) {
        list.push_back(tensor.domain[i].extent.evaluate(lookupIn(sizes_)));
      }
      return list;
    };
    const std::vector<int64_t> in = values(in_, group.in_begin, group.in_end);
    const std::vector<int64_t> out = values(out_, group.out_begin, group.out_end);
    const int64_t elements = productOf(in);
    HEDDLE_USER_CHECK(elements == productOf(out), "the sizes do not fit");
    if (elements == 0) return false;
    const std::optional<Parts> parts = commonParts(in, out);
    if (!parts) {
      result.first.push_back(
          {static_cast<int64_t>(group.in_begin), static_cast<int64_t>(in.size()), 1});
      result.then.push_back({middle++, 1, static_cast<int64_t>(out.size())});
      return true;
    }
    for (size_t i = 0; i < in.size(); ++i) {
      if (parts->in[i] == 1) continue;
      result.first.push_back({static_cast<int64_t>(group.in_begin + i), 1, parts->in[i]});
    }
    for (int64_t count : parts->out) {
      if (count != 1) result.then.push_back({middle, count, 1});
      middle += count;
    }
    return true;
  }

  static int64_t productOf(const std::vector<int64_t>& values) {
    Size size(1);
    for (int64_t value : values) {
      HEDDLE_USER_CHECK(value >= 0, "the size {} is negative", value);
      size = size * Size(value);
    }
    return size.evaluate(lookupIn({}));
  }

  const TensorView& in_;
  const TensorView& out_;
  const SizeBindings& sizes_;
};

std::string axesText(int64_t first, int64_t count) {
  if (count == 1) return fmt::format("axis {}", first);
  return fmt::format("axes {} {} {}", first, count == 2 ? "and" : "to", first + count - 1);
}

std::string stepText(const AxisStep& step) {
  if (step.from > 1) return "merge " + axesText(step.axis, step.from);
  return fmt::format("split axis {} into {}", step.axis, step.to);
}

std::string stepsText(const std::vector<AxisStep>& steps) {
  std::string text;
  for (const AxisStep& step : steps) text += (text.empty() ? "" : ", ") + stepText(step);
  return text;
}

// An axis of the value between two reshapes, and the axes of operand and result to which it
// belongs.
struct Between {
  std::vector<size_t> in;   // several: the axis is merged from them
  std::vector<size_t> out;  // several: the axis is split into them
};

std::optional<AxisStep> stepAt(const std::vector<AxisStep>& steps, size_t axis) {
  for (const AxisStep& step : steps) {
    if (step.axis == static_cast<int64_t>(axis)) return step;
  }
  return std::nullopt;
}

std::vector<size_t> range(size_t begin, int64_t count) {
  std::vector<size_t> axes;
  for (int64_t i = 0; i < count; ++i) axes.push_back(begin + static_cast<size_t>(i));
  return axes;
}

std::vector<Between> axesBetween(const ReshapeDecision& decision, size_t in_rank) {
  std::vector<Between> axes;
  for (size_t i = 0; i < in_rank;) {
    const AxisStep step = stepAt(decision.first, i).value_or(AxisStep{});
    for (int64_t part = 0; part < step.to; ++part) axes.push_back({range(i, step.from), {}});
    i += static_cast<size_t>(step.from);
  }
  size_t out = 0;
  for (size_t i = 0; i < axes.size();) {
    const AxisStep step = stepAt(decision.then, i).value_or(AxisStep{});
    for (int64_t part = 0; part < step.from; ++part) axes.at(i++).out = range(out, step.to);
    out += static_cast<size_t>(step.to);
  }
  return axes;
}

// Marks one size that contains a scalar as given(-1, size), as if the user had written -1 for it.
// Without this mark, FusionBuilder::resolveOpenSize() would assume that each size that is a scalar
// (`%n`) can be -1 in a run. Does nothing if a size already has such a mark.
void markOpen(std::vector<Size>& sizes) {
  const auto has = [&](auto&& test) { return std::find_if(sizes.begin(), sizes.end(), test); };
  if (has([](const Size& size) { return size.hasGiven(); }) != sizes.end()) return;
  auto open = has([](const Size& s) { return s.hasScalar() && s.kind() == Size::Kind::FloorDiv; });
  if (open == sizes.end()) open = has([](const Size& size) { return size.hasScalar(); });
  if (open != sizes.end()) *open = Size::given(Size(-1), *open);
}

}  // namespace

std::string ReshapeDecision::str() const {
  std::string text = "reshape %" + value + ": ";
  if (kind == Kind::Open) return text + "stays, because its sizes have no values or do not fit\n";
  if (kind == Kind::Empty) return text + "no elements\n";
  if (first.empty()) return text + "keep all axes\n";
  return text + stepsText(first) + (then.empty() ? "" : "; then " + stepsText(then)) + "\n";
}

std::vector<ReshapeDecision> decideReshapes(const Fusion& fusion, const SizeBindings& sizes) {
  std::vector<ReshapeDecision> decisions;
  for (const Expression& expr : fusion.exprs()) {
    if (expr.op->kind != OpKind::Reshape) continue;
    const auto& to = expr.attr<std::vector<Size>>("sizes");
    if (std::none_of(to.begin(), to.end(), [](const Size& size) { return size.hasScalar(); })) {
      continue;
    }
    const Value& result = fusion.value(expr.outputs[0]);
    decisions.push_back(
        ReshapeDecider(fusion.tensor(expr.inputs[0]), result.tensor, sizes).run(result.name));
  }
  return decisions;
}

// Computes the sizes from left to right. The size of a merged axis is the product of its operand
// axes. Every other axis between the reshapes is the last part of an operand or result axis. Its
// size is the size of that operand or result axis, divided by the sizes of the earlier parts.
std::vector<Size> sizesBetween(const ReshapeDecision& decision, const std::vector<Size>& in,
                               const std::vector<Size>& out) {
  const std::vector<Between> axes = axesBetween(decision, in.size());
  std::vector<Size> left = in, right = out;  // each axis divided by its parts so far
  std::vector<Size> sizes;
  for (size_t k = 0; k < axes.size(); ++k) {
    const Between& axis = axes[k];
    if (axis.in.size() > 1) {
      Size size(1);
      for (size_t i : axis.in) size = size * in.at(i);
      sizes.push_back(std::move(size));
      continue;
    }
    Size& a = left.at(axis.in.at(0));
    Size& b = right.at(axis.out.at(0));
    const bool ends_in = k + 1 == axes.size() || axes[k + 1].in != axis.in;
    const bool ends_out = k + 1 == axes.size() || axes[k + 1].out != axis.out;
    HEDDLE_CHECK(
        ends_in || ends_out,
        "reshape %{}: an axis between the reshapes is the last part of no operand or result axis",
        decision.value);
    const bool is_part = !(a == in.at(axis.in[0]));  // true: earlier parts were divided off
    const bool by_result = ends_out && (!ends_in || (is_part && b == out.at(axis.out[0])));
    const Size size = by_result ? b : a;
    if (!ends_in) a = quotient(a, size);
    if (!ends_out) b = quotient(b, size);
    sizes.push_back(size);
  }
  markOpen(sizes);
  return sizes;
}

}  // namespace heddle
