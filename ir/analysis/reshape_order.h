#pragma once

#include <optional>
#include <vector>

#include "ir/graph/fusion.h"

namespace heddle {

// A part of a reshape: the operand axes [in_begin, in_end) become the result axes [out_begin,
// out_end). Both have the same product of extents.
struct ReshapeGroup {
  size_t in_begin = 0;
  size_t in_end = 0;
  size_t out_begin = 0;
  size_t out_end = 0;
  bool operator==(const ReshapeGroup&) const = default;
};

// Returns the smallest groups of a reshape, from left to right. The products of extents are
// compared as expressions: first from the left, and then from the right. The axes that remain in
// the middle are one group. If axes remain only in the operand or only in the result, they have one
// element and join a neighbouring group.
std::vector<ReshapeGroup> reshapeGroups(const TensorView& in, const TensorView& out);

// Returns the groups of a reshape in the order in which they are in memory, outermost first.
// Returns nullopt if the reshape cannot be a view of memory with this layout, or if it splits or
// merges a sharded axis. The operand need not be row-major, and may have gaps. The axes of each
// group must be adjacent in memory, in ascending order and without gaps between them. Axes of one
// element do not count. For example, [n, c, h, w] in the order [0, 2, 3, 1] becomes [n, c, h*w] in
// the order [0, 2, 1].
std::optional<std::vector<ReshapeGroup>> reshapeInMemory(const TensorView& in,
                                                         const TensorView& out,
                                                         const Layout::Observed& layout);

// Returns the layout of the result of a reshape that is a view. `groups` is the result of
// reshapeInMemory(), and `layout` is the layout of the operand.
Layout::Observed layoutOfGroups(const std::vector<ReshapeGroup>& groups,
                                const Layout::Observed& layout, const TensorView& in,
                                const TensorView& out);

}  // namespace heddle
