// Ops that add, remove, split and join axes.
#include <algorithm>

#include "ir/base/check.h"
#include "ir/composite/composite.h"
#include "ir/composite/terms.h"

namespace heddle {
namespace {

using composite::Result;
using composite::Term;

Axes firstAxes(size_t count) { return rowMajor(count); }

// Returns a bound of a slice as Python computes it: a negative number counts from the end, and the
// result is clamped to the axis. A bound that is an expression never counts from the end.
Size clampedBound(const Size& bound, const Size& extent) {
  const bool from_end = bound.isConstant() && bound.constant() < 0;
  const Size position = from_end ? extent + bound : bound;
  return Size::min(Size::max(position, Size(0)), extent);
}

// An index along an axis, as a size and as a scalar with this value.
struct IndexAlongAxis {
  Size size;
  Term scalar;
};

// Extends `value` along `axis` to the extent of `line`, which contains 0, 1, 2, ... The elements of
// `value` start at index `start` of the result, or at 0 if `start` is nullptr. All other elements
// of the result are arbitrary, because the caller does not use them.
Term indexed(Term value, int64_t axis, const IndexAlongAxis* start, Term line) {
  FusionBuilder& b = *value.b;
  const size_t at = axis;
  const Size offset = start == nullptr ? Size(0) : start->size;
  const Size after = line.extent(0) - offset - value.extent(at);
  if (offset.isConstant() && after.isConstant()) {
    std::vector<Size> lows(value.rank(), 0);
    std::vector<Size> highs(value.rank(), 0);
    lows[at] = offset;
    highs[at] = after;
    return {&b, b.pad(value.id, lows, highs, b.constant(false))};
  }
  // If the number of elements to add on one side is symbolic, take the elements at computed indices
  // instead of padding.
  const Term indices = start == nullptr ? line : line - start->scalar;
  return {&b, b.take(value.id, indices.id, axis)};
}

std::vector<Term> joinable(FusionBuilder& b, const char* op_name,
                           const std::vector<ValueId>& values, int64_t& axis) {
  HEDDLE_USER_CHECK(!values.empty(), "{}: expected at least one tensor", b.where(op_name));
  std::vector<Term> terms;
  for (ValueId id : values) {
    const size_t rank = b.tensorOf(op_name, id).rank();
    terms.push_back({&b, id});
    HEDDLE_USER_CHECK(rank == terms[0].rank() && rank > 0, "{}: {} and {} cannot be joined: {}",
                      b.where(op_name), b.typeOf(values[0]), b.typeOf(id),
                      rank == 0 ? "they have no axes" : "they differ in rank");
  }
  axis = composite::axisOf(b, op_name, terms[0], axis);
  for (size_t i = 0; i < terms[0].rank(); ++i) {
    for (const Term& term : terms) {
      if (static_cast<int64_t>(i) != axis) b.agree(op_name, values[0], i, term.id, i);
    }
  }
  return terms;
}

}  // namespace

ValueId expandAs(FusionBuilder& b, ValueId x, ValueId y) {
  Result result(b);
  const size_t from = b.tensorOf("expand_as", x).rank();
  const std::vector<Size> sizes = b.tensorOf("expand_as", y).sizes();
  HEDDLE_USER_CHECK(from <= sizes.size(), "{}: {} has more axes than {}", b.where("expand_as"),
                    b.typeOf(x), b.typeOf(y));
  const Term full = composite::broadcast({&b, x}, firstAxes(sizes.size() - from));
  for (size_t i = 0; i < sizes.size(); ++i) {
    const IterDomain& axis = full.tensor().domain[i];
    const bool may_stretch = axis.extent.isConstant(1) || axis.kind == IterKind::Symbolic;
    if (!may_stretch) b.agree("expand_as", full.id, i, y, i);
  }
  return result(b.expand(full.id, sizes));
}

ValueId squeeze(FusionBuilder& b, ValueId x, const Axes& axes) {
  Result result(b);
  b.tensorOf("squeeze", x);
  const Term value{&b, x};
  const Axes listed = composite::axesOf(b, "squeeze", value, axes);
  std::vector<Size> sizes;
  for (size_t i = 0; i < value.rank(); ++i) {
    const bool asked = std::binary_search(listed.begin(), listed.end(), static_cast<int64_t>(i));
    if (!asked || !value.extent(i).isConstant(1)) sizes.push_back(value.extent(i));
  }
  return result(sizes.size() == value.rank() ? b.set(x) : b.reshape(x, sizes));
}

ValueId unsqueeze(FusionBuilder& b, ValueId x, int64_t axis) {
  Result result(b);
  const size_t rank = b.tensorOf("unsqueeze", x).rank();
  return result(b.broadcast(x, {b.normalizeAxis("unsqueeze", axis, rank + 1)}));
}

ValueId transpose(FusionBuilder& b, ValueId x, int64_t axis0, int64_t axis1) {
  Result result(b);
  const size_t rank = b.tensorOf("transpose", x).rank();
  Axes order = rowMajor(rank);
  const Axes from = b.normalizeAxes("transpose", {axis0}, rank);
  const Axes to = b.normalizeAxes("transpose", {axis1}, rank);
  if (rank > 0) std::swap(order[from[0]], order[to[0]]);
  return result(b.permute(x, order));
}

ValueId flatten(FusionBuilder& b, ValueId x, int64_t start, int64_t end) {
  Result result(b);
  const std::vector<Size> sizes = b.tensorOf("flatten", x).sizes();
  if (sizes.empty()) {
    b.normalizeAxes("flatten", {start}, 0);
    b.normalizeAxes("flatten", {end}, 0);
    return result(b.reshape(x, {Size(1)}));
  }
  const int64_t first = b.normalizeAxis("flatten", start, sizes.size());
  const int64_t last = b.normalizeAxis("flatten", end, sizes.size());
  HEDDLE_USER_CHECK(first <= last, "{}: axis {} is not before axis {} of {}", b.where("flatten"),
                    start, end, b.typeOf(x));
  std::vector<Size> flat(sizes.begin(), sizes.begin() + first);
  flat.push_back(product({sizes.begin() + first, sizes.begin() + last + 1}));
  flat.insert(flat.end(), sizes.begin() + last + 1, sizes.end());
  return result(first == last ? b.set(x) : b.reshape(x, flat));
}

ValueId scalarFrom(FusionBuilder& b, const Size& size) { return composite::scalarOf(b, size).id; }

ValueId sliceAxis(FusionBuilder& b, ValueId x, int64_t axis, std::optional<Size> start,
                  std::optional<Size> stop, int64_t step) {
  Result result(b);
  std::vector<Size> stops = b.tensorOf("slice_axis", x).sizes();
  const size_t at = b.normalizeAxis("slice_axis", axis, stops.size());
  HEDDLE_USER_CHECK(step > 0, "{}: the step is {}, expected 1 or more", b.where("slice_axis"),
                    step);
  const Size extent = stops[at];
  std::vector<Size> starts(stops.size(), Size(0));
  std::vector<int64_t> steps(stops.size(), 1);
  starts[at] = clampedBound(start.value_or(Size(0)), extent);
  stops[at] = Size::max(clampedBound(stop.value_or(extent), extent), starts[at]);
  steps[at] = step;
  return result(b.slice(x, starts, stops, steps));
}

ValueId select(FusionBuilder& b, ValueId x, int64_t axis, const Size& index) {
  Result result(b);
  const std::vector<Size> sizes = b.tensorOf("select", x).sizes();
  const size_t along = b.normalizeAxis("select", axis, sizes.size());
  const Size extent = sizes[along];
  const bool known = extent.isConstant() && index.isConstant();
  HEDDLE_USER_CHECK(
      !known || (index.constant() >= -extent.constant() && index.constant() < extent.constant()),
      "{}: axis {} of {} has no element {}", b.where("select"), along, b.typeOf(x), index.str());
  std::vector<Size> starts(sizes.size(), Size(0));
  std::vector<Size> stops = sizes;
  Size& first = starts[along];
  first = index.isConstant() && index.constant() < 0 ? extent + index : index;
  stops[along] = first + Size(1);
  const ValueId one = b.slice(x, starts, stops);
  return result(b.reshape(one, composite::without(sizes, along)));
}

// Extends each tensor to the full extent of the axis. For each element, nested `where` ops then
// select one of the extended tensors by the index along the axis. The innermost `where` is appended
// first, so the loop runs from the last tensor to the first.
ValueId cat(FusionBuilder& b, const std::vector<ValueId>& values, int64_t axis) {
  Result result(b);
  const std::vector<Term> terms = joinable(b, "cat", values, axis);
  if (terms.size() == 1) return result(b.set(values[0]));
  const size_t at = axis;
  std::vector<IndexAlongAxis> ends;  // end of each tensor except the last one
  Size end(0);
  for (size_t i = 0; i + 1 < terms.size(); ++i) {
    end = end + terms[i].extent(at);
    ends.push_back({end, composite::sizeScalar(b, end)});
  }
  const Term line{&b, b.iota({end + terms.back().extent(at)}, 0)};
  const Term position = composite::broadcast(line, composite::otherAxes(terms[0].rank(), axis));
  Term joined = indexed(terms.back(), axis, &ends.back(), line);
  for (size_t i = ends.size(); i-- > 0;) {
    const Term part = indexed(terms[i], axis, i == 0 ? nullptr : &ends[i - 1], line);
    const Term before = composite::call("lt", {position, ends[i].scalar});
    joined = composite::where(before, part, joined);
  }
  return result(joined);
}

ValueId stack(FusionBuilder& b, const std::vector<ValueId>& values, int64_t axis) {
  Result result(b);
  HEDDLE_USER_CHECK(!values.empty(), "{}: expected at least one tensor", b.where("stack"));
  const size_t rank = b.tensorOf("stack", values[0]).rank();
  const int64_t at = b.normalizeAxis("stack", axis, rank + 1);
  std::vector<ValueId> wider;
  for (ValueId id : values) {
    b.tensorOf("stack", id);
    composite::sameShape(b, "stack", {&b, values[0]}, {&b, id});
    wider.push_back(b.broadcast(id, {at}));
  }
  return result(cat(b, wider, at));
}

std::vector<ValueId> chunk(FusionBuilder& b, ValueId x, int64_t chunks, int64_t axis) {
  Result result(b);
  const std::vector<Size> sizes = b.tensorOf("chunk", x).sizes();
  const int64_t along = b.normalizeAxis("chunk", axis, sizes.size());
  constexpr int64_t kMost = 4096;  // a limit, because each piece is a result with a name
  HEDDLE_USER_CHECK(chunks > 0 && chunks <= kMost, "{}: chunks is {}, expected 1 to {}",
                    b.where("chunk"), chunks, kMost);
  const Size extent = sizes[along];
  const Size piece = Size::ceilDiv(extent, chunks);
  std::vector<ValueId> pieces;
  for (int64_t i = 0; i < chunks; ++i) {
    const Size start = piece * Size(i);
    // As in PyTorch, omit empty pieces, except that an empty axis gives `chunks` empty pieces.
    const bool past = start.isConstant() && extent.isConstant() && extent.constant() > 0 &&
                      start.constant() >= extent.constant();
    if (past) break;
    // The last piece ends at the extent. If the extent is a large number, start + piece might
    // exceed it and overflow.
    const bool is_last = start.isConstant() && extent.isConstant() &&
                         extent.constant() - start.constant() <= piece.constant();
    pieces.push_back(sliceAxis(b, x, along, start, is_last ? extent : start + piece));
  }
  result(pieces[0]);
  return pieces;
}

ValueId repeat(FusionBuilder& b, ValueId x, const std::vector<Size>& repeats) {
  Result result(b);
  const size_t rank = b.tensorOf("repeat", x).rank();
  HEDDLE_USER_CHECK(repeats.size() >= rank, "{}: {} has {} axes, got {} repeats", b.where("repeat"),
                    b.typeOf(x), rank, repeats.size());
  const Term wide = composite::broadcast({&b, x}, firstAxes(repeats.size() - rank));
  Axes added;  // one broadcast axis before each axis that is repeated
  std::vector<Size> expanded;
  std::vector<Size> sizes;
  for (size_t i = 0; i < repeats.size(); ++i) {
    const Size& times = repeats[i];
    HEDDLE_USER_CHECK(!times.isConstant() || times.constant() >= 0,
                      "{}: axis {} is repeated {} times", b.where("repeat"), i, times.str());
    b.guardAtMost(Size(0), times,
                  fmt::format("the repeats of axis {} in {}", i, b.where("repeat")));
    if (!times.isConstant(1)) {
      added.push_back(static_cast<int64_t>(expanded.size()));
      expanded.push_back(times.hasScalar() ? Size::given(times, Size(1)) : times);
    }
    expanded.push_back(wide.extent(i));
    sizes.push_back((times.hasScalar() ? expanded[expanded.size() - 2] : times) * wide.extent(i));
  }
  if (added.empty()) return result(wide.id == x ? b.set(x) : wide.id);
  const Term stretched{&b, b.expand(composite::broadcast(wide, added).id, expanded)};
  return result(b.reshape(stretched.id, sizes));
}

}  // namespace heddle
