#include "ir/reference/needs.h"

#include <algorithm>
#include <cstring>

#include "ir/analysis/axis_map.h"
#include "ir/reference/parallel.h"

namespace heddle {
namespace {

using Range = IndexSet::Range;

// The largest number of ranges with which linearRanges() describes a set of indices exactly. If
// more ranges are needed, it returns fewer ranges that contain the set.
constexpr int64_t kMostRanges = 4096;

int64_t productOf(const std::vector<int64_t>& sizes, size_t begin, size_t end) {
  int64_t product = 1;
  for (size_t i = begin; i < end; ++i) product *= sizes[i];
  return product;
}

// Returns ranges of row-major indices over the axes [begin, end). The ranges contain the selected
// elements, and possibly more (kMostRanges).
std::vector<Range> linearRanges(const Selection& wanted, const std::vector<int64_t>& sizes,
                                size_t begin, size_t end) {
  std::vector<Range> ranges = {{0, 1}};
  for (size_t axis = begin; axis < end; ++axis) {
    const IndexSet& set = wanted.axes[axis];
    std::vector<Range> finer;
    const auto coarse = [&](const Range& outer) {
      finer.push_back({outer.begin * sizes[axis], outer.end * sizes[axis]});
    };
    int64_t pieces = 0;
    for (const Range& outer : ranges) {
      pieces += (outer.end - outer.begin) * static_cast<int64_t>(set.ranges().size());
    }
    for (const Range& outer : ranges) {
      if (set.isAll(sizes[axis]) || pieces > kMostRanges) {
        coarse(outer);
        continue;
      }
      for (int64_t i = outer.begin; i < outer.end; ++i) {
        for (const Range& r : set.ranges()) {
          finer.push_back({i * sizes[axis] + r.begin, i * sizes[axis] + r.end});
        }
      }
    }
    ranges = std::move(finer);
  }
  return ranges;
}

// Adds elements to `to` until it contains all elements of `range`, a range of row-major indices
// over the axes [begin, end).
void addLinear(Range range, const std::vector<int64_t>& sizes, size_t begin, size_t end,
               Selection& to) {
  for (size_t axis = begin; axis < end; ++axis) {
    const int64_t inner = productOf(sizes, axis + 1, end);
    const int64_t first = range.begin / inner;
    const int64_t last = (range.end - 1) / inner;
    to.axes[axis].add(Range{first, last + 1});
    if (first != last) {  // the range crosses a multiple of `inner`: take all inner axes in full
      for (size_t i = axis + 1; i < end; ++i) to.axes[i] = IndexSet::all(sizes[i]);
      return;
    }
    range = {range.begin - first * inner, range.end - first * inner};
  }
}

Selection reshapeNeeds(const ReferenceContext& context, const Expression& expr,
                       const Selection& wanted) {
  const std::vector<int64_t> from = context.sizesOf(expr.inputs[0]);
  const std::vector<int64_t> to = context.sizesOf(expr.outputs[0]);
  Selection needed;
  needed.axes.resize(from.size());
  if (wanted.count() == 0) return needed;
  // The loop divides the axes of both shapes into groups. A group of `from` and the group of `to`
  // with the same number have the same number of elements. Each group is as short as possible. For
  // example, the reshape of [2, 3, 4] to [6, 2, 2] has the groups [2, 3] -> [6] and [4] -> [2, 2].
  size_t i = 0;
  size_t j = 0;
  while (i < from.size() || j < to.size()) {
    const size_t first_i = i;
    const size_t first_j = j;
    int64_t a = i < from.size() ? from[i++] : 1;
    int64_t b = j < to.size() ? to[j++] : 1;
    while (a != b || (i == from.size() && j < to.size()) || (j == to.size() && i < from.size())) {
      const bool extend_from = i < from.size() && (a < b || j == to.size());
      if (extend_from) {
        a *= from[i++];
      } else {
        b *= to[j++];
      }
    }
    for (const Range& range : linearRanges(wanted, to, first_j, j)) {
      if (range.begin < range.end) addLinear(range, from, first_i, i, needed);
    }
  }
  return needed;
}

Selection sliceNeeds(const ReferenceContext& context, const Expression& expr,
                     const Selection& wanted) {
  const auto& starts = expr.attr<std::vector<Size>>("starts");
  const Attr* steps = expr.find("steps");
  Selection needed;
  for (size_t axis = 0; axis < wanted.axes.size(); ++axis) {
    const int64_t start = context.evaluate(starts[axis]);
    const int64_t step = steps == nullptr ? 1 : std::get<std::vector<int64_t>>(*steps)[axis];
    IndexSet& set = needed.axes.emplace_back();
    if (step == 1) {
      for (const Range& r : wanted.axes[axis].ranges()) set.add({start + r.begin, start + r.end});
      continue;
    }
    std::vector<int64_t> indices = wanted.axes[axis].indices();
    for (int64_t& index : indices) index = start + index * step;
    set = IndexSet::of(std::move(indices));
  }
  return needed;
}

// Returns whether the op must compute all elements along output axis `axis`. This is the case if
// these elements depend on each other or on their positions along the axis.
bool computesWholeAxis(const Expression& expr, const AxisMap& map, size_t axis) {
  switch (expr.op->kind) {
    case OpKind::Iota:
    case OpKind::Scan:
    case OpKind::Scatter:
      return axis == expr.axis();
    case OpKind::Index: {
      if (expr.op->name == "take" || expr.op->name == "take_along_axis") return false;
      return map.inputs[0][axis] == AxisMap::kNone;  // axes that flip or pad changes
    }
    default:
      return false;
  }
}

// Finds the position of an index in a set of indices.
class Positions {
 public:
  explicit Positions(const IndexSet& set) : ranges_(set.ranges()) {
    int64_t before = 0;
    for (const Range& range : ranges_) {
      before_.push_back(before);
      before += range.end - range.begin;
    }
  }
  // Returns the number of smaller indices in the set. Requires that the set contains `index`.
  int64_t of(int64_t index) const {
    const auto after = std::upper_bound(ranges_.begin(), ranges_.end(), index,
                                        [](int64_t i, const Range& r) { return i < r.begin; });
    const auto at = static_cast<size_t>(after - ranges_.begin()) - 1;
    return before_[at] + index - ranges_[at].begin;
  }

 private:
  const std::vector<Range>& ranges_;
  std::vector<int64_t> before_;
};

Needs wholeNeeds(const ReferenceContext& context, const Expression& expr) {
  Needs needs{Selection::all(context.sizesOf(expr.outputs[0])), {}};
  for (ValueId id : expr.inputs) needs.operands.push_back(Selection::all(context.sizesOf(id)));
  return needs;
}

// Returns, for each axis of the iteration space, the output axis, or -1 if the axis is reduced.
std::vector<int> outputAxes(const AxisMap& map) {
  std::vector<int> axes(map.space.size(), -1);
  for (size_t axis = 0; axis < map.outputs[0].size(); ++axis) {
    const int at = map.outputs[0][axis];
    if (at != AxisMap::kNone) axes[at] = static_cast<int>(axis);
  }
  return axes;
}

// Returns the needs according to the axis map (ir/analysis/axis_map.h). Along an operand axis that
// is mapped to an output axis, the expression reads the same indices that Needs::computed has along
// the output axis. Along all other operand axes, it reads all indices. If a mapped axis has another
// extent than its output axis, the expression computes all elements of the result from all elements
// of all operands.
Needs mappedNeeds(const ReferenceContext& context, const Expression& expr,
                  const Selection& wanted) {
  const AxisMap map = axisMapOf(context.fusion, expr);
  const std::vector<int64_t> sizes = context.sizesOf(expr.outputs[0]);
  Needs needs{wanted, {}};
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    if (computesWholeAxis(expr, map, axis)) needs.computed.axes[axis] = IndexSet::all(sizes[axis]);
  }
  const std::vector<int> output_axis = outputAxes(map);
  for (size_t i = 0; i < expr.inputs.size(); ++i) {
    Selection& needed = needs.operands.emplace_back();
    if (context.fusion.value(expr.inputs[i]).is_scalar) continue;
    const std::vector<int64_t> from = context.sizesOf(expr.inputs[i]);
    needed = Selection::all(from);
    const std::vector<int> none(from.size(), AxisMap::kNone);
    const std::vector<int>& mapped = i < map.inputs.size() ? map.inputs[i] : none;
    for (size_t axis = 0; axis < mapped.size(); ++axis) {
      if (mapped[axis] == AxisMap::kNone) continue;
      const int out = output_axis[mapped[axis]];
      if (out < 0) continue;  // reduced
      if (from[axis] != sizes[out]) return wholeNeeds(context, expr);
      needed.axes[axis] = needs.computed.axes[out];
    }
  }
  return needs;
}

}  // namespace

Needs needsOf(const ReferenceContext& context, const Expression& expr, const Selection& wanted) {
  const OpKind kind = expr.op->kind;
  if (kind == OpKind::Reshape || kind == OpKind::Slice) {
    accessesOf(context, expr);  // throws if the slice or the number of elements is wrong
  }
  if (expr.op->kind == OpKind::Reshape) return {wanted, {reshapeNeeds(context, expr, wanted)}};
  if (expr.op->kind == OpKind::Slice) return {wanted, {sliceNeeds(context, expr, wanted)}};
  if (kind == OpKind::Diagonal) return wholeNeeds(context, expr);
  Needs needs = mappedNeeds(context, expr, wanted);
  // If two operands are the same value but need different elements, the expression reads and
  // computes all elements. Its evaluation has only one tensor and one list of sizes for each value.
  for (size_t i = 0; i < expr.inputs.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (expr.inputs[i] == expr.inputs[j] && !(needs.operands[i] == needs.operands[j])) {
        return wholeNeeds(context, expr);
      }
    }
  }
  return needs;
}

HostTensor reshapedElements(const ReferenceContext& context, const Expression& expr,
                            const HostTensor& value, const Selection& held,
                            const Selection& wanted) {
  const std::vector<int64_t> from = context.sizesOf(expr.inputs[0]);
  const std::vector<int64_t> to = context.sizesOf(expr.outputs[0]);
  if (held == Selection::all(from) && wanted == Selection::all(to)) {
    HostTensor out = value;
    out.sizes = to;
    return out;
  }
  HostTensor out(value.dtype, wanted.sizes());
  const size_t element = sizeOf(value.dtype);
  std::vector<std::vector<int64_t>> indices;
  for (const IndexSet& axis : wanted.axes) indices.push_back(axis.indices());
  std::vector<Positions> positions;
  for (const IndexSet& axis : held.axes) positions.emplace_back(axis);
  const auto copy = [&](int64_t n) {
    int64_t linear = 0;  // linear index of the element in the full tensor
    int64_t rest = n;
    int64_t stride = 1;
    for (size_t axis = to.size(); axis-- > 0; stride *= to[axis]) {
      const auto count = static_cast<int64_t>(indices[axis].size());
      linear += indices[axis][rest % count] * stride;
      rest /= count;
    }
    int64_t place = 0;
    stride = 1;
    for (size_t axis = from.size(); axis-- > 0;) {
      place += positions[axis].of(linear % from[axis]) * stride;
      linear /= from[axis];
      stride *= held.axes[axis].count();
    }
    std::memcpy(out.data.get() + static_cast<size_t>(n) * element,
                value.data.get() + static_cast<size_t>(place) * element, element);
  };
  inParallel(out.numel(), 16384, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) copy(n);
  });
  return out;
}

}  // namespace heddle
