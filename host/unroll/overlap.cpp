#include "host/unroll/overlap.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace heddle::host {
namespace {

// Divides memory into rows of `row` bytes, and their bytes into columns. Returns whether each
// tensor has the same columns in all its rows, and the two tensors have no column in common. For
// example, different slices of a tensor along an inner axis have no column in common.
bool areInDifferentColumns(const TensorInMemory& a, const TensorInMemory& b, int64_t row) {
  std::array<std::pair<int64_t, int64_t>, 2> columns;  // first column, and end of the last one
  for (size_t i = 0; i < 2; ++i) {
    const TensorInMemory& tensor = i == 0 ? a : b;
    const int64_t bytes = sizeOf(tensor.desc.dtype);
    int64_t width = bytes;
    for (size_t axis = 0; axis < tensor.desc.rank(); ++axis) {
      const int64_t stride = tensor.desc.strides[axis] * bytes;
      if (stride % row != 0) width += (tensor.desc.sizes[axis] - 1) * stride;
    }
    const int64_t first = ((tensor.begin % row) + row) % row;  // `begin` may be negative
    if (first + width > row) return false;
    columns[i] = {first, first + width};
  }
  return columns[0].second <= columns[1].first || columns[1].second <= columns[0].first;
}

// Returns the number of bytes from the first to the last element, both included.
int64_t spanOf(const TensorDesc& desc) {
  int64_t last = 0;
  for (size_t axis = 0; axis < desc.rank(); ++axis) {
    last += (desc.sizes[axis] - 1) * desc.strides[axis];
  }
  return (last + 1) * sizeOf(desc.dtype);
}

}  // namespace

bool areApart(const TensorInMemory& a, const TensorInMemory& b) {
  if (a.desc.numel() == 0 || b.desc.numel() == 0) return true;
  if (a.begin + spanOf(a.desc) <= b.begin || b.begin + spanOf(b.desc) <= a.begin) return true;
  return std::any_of(a.desc.strides.begin(), a.desc.strides.end(), [&](int64_t stride) {
    return stride > 0 && areInDifferentColumns(a, b, stride * sizeOf(a.desc.dtype));
  });
}

bool areApart(const View& a, const View& b) {
  if (a.buffer != b.buffer || a.desc.numel() == 0 || b.desc.numel() == 0) return true;
  if (!(a.late == b.late)) return false;
  return areApart(TensorInMemory{a.desc, a.byte_offset}, TensorInMemory{b.desc, b.byte_offset});
}

bool isSameView(const View& a, const View& b) {
  if (a.buffer != b.buffer || a.byte_offset != b.byte_offset || !(a.late == b.late)) return false;
  if (a.desc.dtype != b.desc.dtype || a.desc.sizes != b.desc.sizes) return false;
  for (size_t axis = 0; axis < a.desc.rank(); ++axis) {
    if (a.desc.sizes[axis] > 1 && a.desc.strides[axis] != b.desc.strides[axis]) return false;
  }
  return true;
}

bool mayOverlapItself(const TensorDesc& desc) {
  if (desc.numel() == 0) return false;
  std::vector<std::pair<int64_t, int64_t>> axes;  // strides and sizes
  for (size_t axis = 0; axis < desc.rank(); ++axis) {
    if (desc.sizes[axis] > 1) axes.emplace_back(desc.strides[axis], desc.sizes[axis]);
  }
  std::sort(axes.begin(), axes.end());
  int64_t last = 0;  // offset of the last element along the smaller axes
  for (const auto& [stride, size] : axes) {
    if (stride <= last) return true;
    last += (size - 1) * stride;
  }
  return false;
}

}  // namespace heddle::host
