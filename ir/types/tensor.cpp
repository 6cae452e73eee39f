#include "ir/types/tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>

#include "ir/base/check.h"

namespace heddle {

std::vector<Size> TensorView::sizes() const {
  std::vector<Size> result;
  for (const IterDomain& axis : domain) result.push_back(axis.extent);
  return result;
}

AxisOrder TensorView::allocationOrder() const {
  if (layout.required) return *layout.required;
  if (layout.needed) return *layout.needed;
  if (layout.hint) return *layout.hint;
  return rowMajor(rank());
}

AxisOrder rowMajor(size_t rank) {
  AxisOrder order(rank);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

bool isUnitAxis(const TensorView& tensor, size_t axis) {
  const IterDomain& domain = tensor.domain[axis];
  if (domain.kind == IterKind::Broadcast) return true;
  return domain.extent.isConstant(1) && !(tensor.sharding && tensor.sharding->isSharded(axis));
}

int64_t TensorDesc::numel() const {
  if (!held) return 0;
  int64_t n = 1;
  for (int64_t size : sizes) n *= size;
  return n;
}

int64_t TensorDesc::allocElements() const {
  if (!held) return 0;
  int64_t last = 0;
  for (size_t i = 0; i < alloc.size(); ++i) {
    if (alloc[i] == 0) return 0;
    last += (alloc[i] - 1) * strides[i];
  }
  return last + 1;
}

int64_t TensorDesc::allocBytes() const { return allocElements() * sizeOf(dtype); }

bool TensorDesc::isContiguous() const {
  int64_t expected = 1;
  for (size_t i = rank(); i-- > 0;) {
    if (alloc[i] != sizes[i]) return false;
    if (sizes[i] != 1 && strides[i] != expected) return false;
    expected *= sizes[i];
  }
  return true;
}

std::vector<int64_t> stridesFor(const std::vector<int64_t>& alloc, const AxisOrder& order) {
  std::vector<int64_t> strides(alloc.size());
  int64_t stride = 1;
  for (size_t i = order.size(); i-- > 0;) {
    const size_t axis = order[i];
    strides[axis] = stride;
    // Count an extent of 0 as 1, so that the strides of the outer axes are not 0.
    stride *= alloc[axis] > 0 ? alloc[axis] : 1;
  }
  return strides;
}

TensorDesc denseDesc(DType dtype, std::vector<int64_t> sizes) {
  TensorDesc desc;
  desc.dtype = dtype;
  desc.strides = stridesFor(sizes, rowMajor(sizes.size()));
  desc.global = sizes;
  desc.alloc = sizes;
  desc.offset.assign(sizes.size(), 0);
  desc.sizes = std::move(sizes);
  return desc;
}

std::string str(const std::vector<int64_t>& sizes) {
  return fmt::format("[{}]", fmt::join(sizes, ", "));
}

}  // namespace heddle
