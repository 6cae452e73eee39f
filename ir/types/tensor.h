#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/base/dtype.h"
#include "ir/base/size.h"
#include "ir/types/sharding.h"

namespace heddle {

enum class IterKind : uint8_t {
  Iteration,
  Broadcast,  // extent 1, stretches to any extent; takes part in no layout or sharding
  Reduction,  // only in the iteration space of an expression (ir/analysis/axis_map.h), never in a
              // tensor
};

struct IterDomain {
  Size extent;
  IterKind kind = IterKind::Iteration;
  bool operator==(const IterDomain&) const = default;
};

// An order of axes in memory: logical axes from outermost to innermost. NHWC storage of a logical
// [n, c, h, w] is {0, 2, 3, 1}. Always a permutation of 0 .. rank-1.
using AxisOrder = std::vector<int64_t>;

// Three notions that must not be mixed up.
struct Layout {
  struct Observed {
    AxisOrder order;
    std::vector<bool> contiguous;  // per logical axis: stride == stride * extent of the next inner
    bool operator==(const Observed&) const = default;
  };
  std::optional<Observed> observed;           // inputs: what callers pass, checked at each run
  std::optional<AxisOrder> stride_order;      // required by the user; outputs must have it
  std::optional<AxisOrder> allocation_order;  // hinted by a pass; binds nobody

  bool operator==(const Layout&) const = default;
};

// A tensor value. Logical sizes are the unsharded ones, whatever the sharding.
struct TensorView {
  DType dtype = DType::F32;
  std::vector<IterDomain> domain;
  Layout layout;
  std::optional<Sharding> sharding;

  bool operator==(const TensorView&) const = default;

  size_t rank() const { return domain.size(); }
  std::vector<Size> sizes() const;
  // required, else hinted, else row-major.
  AxisOrder allocationOrder() const;
};

AxisOrder rowMajor(size_t rank);

// One tensor as every part of heddle sees it at run time: inputs, outputs, preallocated outputs
// and kernel arguments alike. Sizes and strides are in elements, per logical axis.
struct TensorDesc {
  DType dtype = DType::F32;
  std::vector<int64_t> global;   // unsharded logical sizes
  std::vector<int64_t> sizes;    // valid on this rank
  std::vector<int64_t> alloc;    // allocated on this rank; >= sizes
  std::vector<int64_t> strides;  // of the allocation; 0 for a stretched axis
  std::vector<int64_t> offset;   // global index of local element 0; empty or zeros as an input's:
                                 // where the sharding has it
  bool held = true;  // false: this rank is outside of the tensor's mesh and has no data of it

  bool operator==(const TensorDesc&) const = default;

  size_t rank() const { return sizes.size(); }
  int64_t numel() const;          // product of sizes; 0 where it is not held
  int64_t allocElements() const;  // elements spanned from the first to the last allocated + 1
  int64_t allocBytes() const;
  bool isContiguous() const;  // sizes == alloc and row-major strides without gaps
};

// Row-major strides for `alloc` in the given memory order.
std::vector<int64_t> stridesFor(const std::vector<int64_t>& alloc, const AxisOrder& order);

// An unsharded, dense, row-major descriptor.
TensorDesc denseDesc(DType dtype, std::vector<int64_t> sizes);

std::string str(const std::vector<int64_t>& sizes);  // "[16, 512, 4096]"

}  // namespace heddle
