#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/base/dtype.h"
#include "ir/base/size.h"
#include "ir/types/sharding.h"

namespace heddle {

enum class IterKind : uint8_t {
  Iteration,  // an ordinary axis
  Broadcast,  // extent 1; stretches to any extent; layouts and shardings ignore the axis
  // An axis whose extent may be 1 in a run (Fusion::symbolic_sizes). In such a run, the axis
  // broadcasts. When heddle compiles the fusion for the sizes of a run, it replaces this kind by
  // one of the two kinds above.
  Symbolic,
  // An axis that an expression reduces. It occurs in the iteration space of the expression, never
  // in a tensor.
  Reduction,
};

struct IterDomain {
  Size extent;
  IterKind kind = IterKind::Iteration;
  bool operator==(const IterDomain&) const = default;
};

// The order of axes in memory: a list of the logical axes 0 .. rank-1 from outermost to innermost.
// For example, {0, 2, 3, 1} is NHWC storage of a tensor with the logical axes [n, c, h, w].
using AxisOrder = std::vector<int64_t>;

// The layout of a tensor in memory. For an input, only `observed` may be set. For every other
// tensor, `observed` is not set, and TensorView::allocationOrder() computes from the other members
// the memory order in which the tensor is allocated.
struct Layout {
  struct Observed {
    AxisOrder order;
    // For each logical axis: whether no gap separates consecutive elements along the axis. The
    // stride of the axis then equals stride * allocated elements of the next inner axis in `order`,
    // or 1 for the innermost axis. Axes of one element may have any stride, and are skipped.
    std::vector<bool> contiguous;
    bool operator==(const Observed&) const = default;
  };
  std::optional<Observed> observed;   // the layout of an input; every run checks it
  std::optional<AxisOrder> required;  // the order that the user requires; passes never change it
  // The order that a collective, a library call or a view needs. The pass that inserted or prepared
  // this operation sets it.
  std::optional<AxisOrder> needed;
  // The order that a pass prefers. Every later pass may change or remove it.
  std::optional<AxisOrder> hint;

  bool operator==(const Layout&) const = default;
};

// The type of a tensor value. The extents are unsharded sizes, even if the tensor has a sharding.
struct TensorView {
  DType dtype = DType::F32;
  std::vector<IterDomain> domain;
  Layout layout;
  std::optional<Sharding> sharding;

  bool operator==(const TensorView&) const = default;

  size_t rank() const { return domain.size(); }
  std::vector<Size> sizes() const;
  // Returns whether the user requires an order of this tensor, or an operation of the fusion needs
  // one.
  bool hasFixedOrder() const { return layout.required || layout.needed; }
  // Returns the first of layout.required, layout.needed and layout.hint that is set, otherwise
  // row-major order.
  AxisOrder allocationOrder() const;
};

AxisOrder rowMajor(size_t rank);

// Returns whether the axis is known to have exactly one element on every device that holds the
// tensor. The result is false for a sharded axis of extent 1, because only one block has its
// element.
bool isUnitAxis(const TensorView& tensor, size_t axis);

// Describes one tensor at run time: an input, an output, a preallocated output or an argument of a
// kernel. Sizes, strides and offsets are in elements, with one entry per logical axis.
struct TensorDesc {
  DType dtype = DType::F32;
  std::vector<int64_t> global;   // unsharded logical sizes
  std::vector<int64_t> sizes;    // valid elements on this rank
  std::vector<int64_t> alloc;    // allocated elements on this rank; >= sizes
  std::vector<int64_t> strides;  // strides of the allocation; 0 for a stretched broadcast axis
  // The index of local element 0 in the unsharded tensor. For an input, the list may be empty or
  // all zeros. The offset then follows from the sharding of the input.
  std::vector<int64_t> offset;
  bool held = true;  // false: this rank is outside of the tensor's mesh and holds no data

  bool operator==(const TensorDesc&) const = default;

  size_t rank() const { return sizes.size(); }
  int64_t numel() const;          // product of sizes; 0 if not held
  int64_t allocElements() const;  // elements from the first to the last allocated element
  int64_t allocBytes() const;
  bool isContiguous() const;  // whether sizes == alloc, and strides are row-major without gaps
};

// Returns the strides of a dense allocation of `alloc` elements per axis in the given memory order.
std::vector<int64_t> stridesFor(const std::vector<int64_t>& alloc, const AxisOrder& order);

// Returns the descriptor of an unsharded, dense, row-major tensor.
TensorDesc denseDesc(DType dtype, std::vector<int64_t> sizes);

std::string str(const std::vector<int64_t>& sizes);  // "[16, 512, 4096]"

}  // namespace heddle
