#include "ir/analysis/reshape_order.h"

#include <algorithm>

namespace heddle {
namespace {

Size product(const TensorView& tensor, size_t begin, size_t end) {
  Size result(1);
  for (size_t i = begin; i < end; ++i) result = result * tensor.domain[i].extent;
  return result;
}

// Returns the smallest group that begins at these axes.
ReshapeGroup nextGroup(const TensorView& in, const TensorView& out, size_t in_begin,
                       size_t out_begin) {
  const size_t most = in.rank() - in_begin + out.rank() - out_begin;
  for (size_t axes = 2; axes <= most; ++axes) {
    for (size_t of_in = 1; of_in < axes; ++of_in) {
      const size_t in_end = in_begin + of_in;
      const size_t out_end = out_begin + axes - of_in;
      if (in_end > in.rank() || out_end > out.rank()) continue;
      if (product(in, in_begin, in_end) == product(out, out_begin, out_end)) {
        return {in_begin, in_end, out_begin, out_end};
      }
    }
  }
  return {in_begin, in.rank(), out_begin, out.rank()};
}

bool isUnit(const TensorView& tensor, size_t axis) {
  return tensor.domain[axis].extent.isConstant(1);
}

bool hasScalar(const TensorView& tensor) {
  return std::any_of(tensor.domain.begin(), tensor.domain.end(),
                     [](const IterDomain& axis) { return axis.extent.hasScalar(); });
}

// Returns the position in memory of the first axis of the group, not counting axes of one element.
// Returns -1 if all axes have one element, and nullopt if the axes are not adjacent or not in
// ascending order.
std::optional<int64_t> placeOf(const ReshapeGroup& group, const AxisOrder& memory,
                               const TensorView& in) {
  int64_t first = -1;
  int64_t next = -1;
  for (size_t axis = group.in_begin; axis < group.in_end; ++axis) {
    if (isUnit(in, axis)) continue;
    const auto found = std::find(memory.begin(), memory.end(), static_cast<int64_t>(axis));
    const int64_t place = found - memory.begin();
    if (first < 0) first = place;
    if (next >= 0 && place != next) return std::nullopt;
    next = place + 1;
  }
  return first;
}

}  // namespace

std::vector<ReshapeGroup> reshapeGroups(const TensorView& in, const TensorView& out) {
  std::vector<ReshapeGroup> groups;
  size_t from = 0;
  size_t to = 0;
  while (from < in.rank() && to < out.rank()) {
    groups.push_back(nextGroup(in, out, from, to));
    from = groups.back().in_end;
    to = groups.back().out_end;
  }
  // Axes of one element may be left on one side.
  if (!groups.empty()) {
    groups.back().in_end = in.rank();
    groups.back().out_end = out.rank();
  }
  return groups;
}

std::optional<std::vector<ReshapeGroup>> reshapeInMemory(const TensorView& in,
                                                         const TensorView& out,
                                                         const AxisOrder& order) {
  if (hasScalar(in) || hasScalar(out)) return std::nullopt;
  AxisOrder memory;
  std::copy_if(order.begin(), order.end(), std::back_inserter(memory),
               [&](int64_t axis) { return !isUnit(in, static_cast<size_t>(axis)); });
  std::vector<std::pair<int64_t, ReshapeGroup>> placed;
  for (const ReshapeGroup& group : reshapeGroups(in, out)) {
    const std::optional<int64_t> place = placeOf(group, memory, in);
    if (!place) return std::nullopt;
    placed.emplace_back(*place, group);
  }
  std::stable_sort(placed.begin(), placed.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<ReshapeGroup> groups;
  for (const auto& [place, group] : placed) groups.push_back(group);
  return groups;
}

AxisOrder orderOfGroups(const std::vector<ReshapeGroup>& groups) {
  AxisOrder order;
  for (const ReshapeGroup& group : groups) {
    for (size_t axis = group.out_begin; axis < group.out_end; ++axis) {
      order.push_back(static_cast<int64_t>(axis));
    }
  }
  return order;
}

}  // namespace heddle
