#include "ir/analysis/reshape_order.h"

#include <algorithm>

namespace heddle {
namespace {

Size product(const TensorView& tensor, size_t begin, size_t end) {
  Size result(1);
  for (size_t i = begin; i < end; ++i) result = result * tensor.domain[i].extent;
  return result;
}

// Returns the smallest part of `rest` whose operand axes and result axes have equal products of
// extents. The part is at the end of `rest` if `at_end` is true, otherwise at its beginning.
// Returns nullopt if there is no part whose products are known to be equal.
std::optional<ReshapeGroup> smallestPart(const TensorView& in, const TensorView& out,
                                         const ReshapeGroup& rest, bool at_end) {
  const size_t of_rest = rest.in_end - rest.in_begin + rest.out_end - rest.out_begin;
  for (size_t axes = 2; axes <= of_rest; ++axes) {
    for (size_t of_in = 1; of_in < axes; ++of_in) {
      const size_t of_out = axes - of_in;
      if (of_in > rest.in_end - rest.in_begin || of_out > rest.out_end - rest.out_begin) continue;
      ReshapeGroup part = rest;
      if (at_end) {
        part.in_begin = rest.in_end - of_in;
        part.out_begin = rest.out_end - of_out;
      } else {
        part.in_end = rest.in_begin + of_in;
        part.out_end = rest.out_begin + of_out;
      }
      if (product(in, part.in_begin, part.in_end) == product(out, part.out_begin, part.out_end)) {
        return part;
      }
    }
  }
  return std::nullopt;
}

bool isUnit(const TensorView& tensor, size_t axis) {
  return tensor.domain[axis].extent.isConstant(1);
}

// Returns the position in `memory` of the first axis of the group, not counting axes of one
// element. Returns -1 if all axes have one element. Returns nullopt if the axes are not adjacent,
// not in ascending order, or separated by gaps.
std::optional<int64_t> positionOf(const ReshapeGroup& group, const AxisOrder& memory,
                                  const std::vector<bool>& contiguous, const TensorView& in) {
  int64_t first = -1;
  int64_t last = -1;
  for (size_t axis = group.in_begin; axis < group.in_end; ++axis) {
    if (isUnit(in, axis)) continue;
    const auto found = std::find(memory.begin(), memory.end(), static_cast<int64_t>(axis));
    const int64_t position = found - memory.begin();
    if (first < 0) first = position;
    if (last >= 0 && (position != last + 1 || !contiguous[memory[last]])) return std::nullopt;
    last = position;
  }
  return first;
}

// Returns whether the reshape keeps every sharded axis. If it splits or merges none of them, their
// padding does not matter.
bool keepsShardedAxes(const TensorView& in, const TensorView& out,
                      const std::vector<ReshapeGroup>& groups) {
  const auto is_split = [](const TensorView& tensor, size_t begin, size_t end) {
    if (!tensor.sharding) return false;
    const auto& axes = tensor.sharding->axes;
    return std::any_of(axes.begin() + static_cast<ptrdiff_t>(begin),
                       axes.begin() + static_cast<ptrdiff_t>(end),
                       [](const auto& mesh_axes) { return !mesh_axes.empty(); });
  };
  return std::all_of(groups.begin(), groups.end(), [&](const ReshapeGroup& group) {
    const bool is_kept = group.in_end == group.in_begin + 1 && group.out_end == group.out_begin + 1;
    return is_kept || (!is_split(in, group.in_begin, group.in_end) &&
                       !is_split(out, group.out_begin, group.out_end));
  });
}

}  // namespace

std::vector<ReshapeGroup> reshapeGroups(const TensorView& in, const TensorView& out) {
  ReshapeGroup rest{0, in.rank(), 0, out.rank()};
  std::vector<ReshapeGroup> groups;
  while (const auto part = smallestPart(in, out, rest, false)) {
    groups.push_back(*part);
    rest.in_begin = part->in_end;
    rest.out_begin = part->out_end;
  }
  std::vector<ReshapeGroup> last;
  while (const auto part = smallestPart(in, out, rest, true)) {
    last.push_back(*part);
    rest.in_end = part->in_begin;
    rest.out_end = part->out_begin;
  }
  // The products of the whole tensors are equal, and so are the products of the rest. If the rest
  // has axes only in the operand or only in the result, they have one element and belong to a
  // neighbouring group.
  const bool has_in = rest.in_begin < rest.in_end, has_out = rest.out_begin < rest.out_end;
  if ((has_in && has_out) || (groups.empty() && last.empty())) {
    if (has_in || has_out) groups.push_back(rest);
  } else if (!groups.empty()) {
    groups.back().in_end = rest.in_end;
    groups.back().out_end = rest.out_end;
  } else {
    last.back().in_begin = rest.in_begin;
    last.back().out_begin = rest.out_begin;
  }
  groups.insert(groups.end(), last.rbegin(), last.rend());
  return groups;
}

std::optional<std::vector<ReshapeGroup>> reshapeInMemory(const TensorView& in,
                                                         const TensorView& out,
                                                         const Layout::Observed& layout) {
  AxisOrder memory;
  std::copy_if(layout.order.begin(), layout.order.end(), std::back_inserter(memory),
               [&](int64_t axis) { return !isUnit(in, static_cast<size_t>(axis)); });
  std::vector<std::pair<int64_t, ReshapeGroup>> placed;
  const std::vector<ReshapeGroup> in_order = reshapeGroups(in, out);
  if (!keepsShardedAxes(in, out, in_order)) return std::nullopt;
  for (const ReshapeGroup& group : in_order) {
    const std::optional<int64_t> position = positionOf(group, memory, layout.contiguous, in);
    if (!position) return std::nullopt;
    placed.emplace_back(*position, group);
  }
  std::stable_sort(placed.begin(), placed.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<ReshapeGroup> groups;
  for (const auto& [position, group] : placed) groups.push_back(group);
  return groups;
}

Layout::Observed layoutOfGroups(const std::vector<ReshapeGroup>& groups,
                                const Layout::Observed& layout, const TensorView& in,
                                const TensorView& out) {
  Layout::Observed result{{}, std::vector<bool>(out.rank(), true)};
  for (const ReshapeGroup& group : groups) {
    for (size_t axis = group.out_begin; axis < group.out_end; ++axis) {
      result.order.push_back(static_cast<int64_t>(axis));
    }
    // In a group, the innermost axes of operand and result, not counting axes of one element, have
    // the same stride. If the operand's axis has gaps, the result's axis therefore has gaps too.
    size_t inner = group.in_end;
    while (inner > group.in_begin && isUnit(in, inner - 1)) --inner;
    if (inner == group.in_begin || layout.contiguous[inner - 1]) continue;
    for (size_t axis = group.out_end; axis-- > group.out_begin;) {
      result.contiguous[axis] = isUnit(out, axis);
      if (!isUnit(out, axis)) break;
    }
  }
  return result;
}

}  // namespace heddle
