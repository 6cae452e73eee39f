#include "host/unroll/overlap.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>
#include <utility>
#include <vector>

namespace heddle::host {
namespace {

// Treats memory as rows of `row` bytes. A column is a byte offset within a row. Returns true only
// if each tensor has the same columns in all its rows, and the column ranges of the two tensors are
// disjoint. A range also includes unused columns between used ones. For example, disjoint slices of
// a tensor along an inner axis have disjoint column ranges.
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

// Searches for an element of `a` and an element of `b` that have a byte in common. The distance of
// two elements is a constant plus a sum over the axes of both tensors. Each axis adds its step (the
// stride in bytes) times a number from 0 to a maximum. Axes with equal steps count as one axis.
class CommonByteSearch {
 public:
  CommonByteSearch(const TensorInMemory& a, const TensorInMemory& b)
      : least_(1 - sizeOf(b.desc.dtype)), most_(sizeOf(a.desc.dtype) - 1) {
    add(b.desc, 1);
    add(a.desc, -1);
    least_ += a.begin - b.begin;
    most_ += a.begin - b.begin;
    std::sort(axes_.begin(), axes_.begin() + count_,
              [](const Axis& x, const Axis& y) { return x.step > y.step; });
    for (size_t i = count_; i-- > 0;) {
      axes_[i].sum = axes_[i].step * axes_[i].most + sumFrom(i + 1);
      axes_[i].divisor = std::gcd(axes_[i].step, i + 1 < count_ ? axes_[i + 1].divisor : 0);
    }
  }

  Sharing run() {
    if (!fits_) return Sharing::Unknown;
    const bool found = search(0, least_, most_);
    if (found) return Sharing::Bytes;
    return visits_ > kMostVisits ? Sharing::Unknown : Sharing::Nothing;
  }

 private:
  static constexpr size_t kMostAxes = 32;  // largest number of different steps
  static constexpr int64_t kMostVisits = 1000;

  struct Axis {
    int64_t step = 0;     // in bytes, above 0
    int64_t most = 0;     // the largest number by which `step` is multiplied
    int64_t sum = 0;      // the largest sum of this axis and the axes after it
    int64_t divisor = 0;  // divides the steps of this axis and of the axes after it
  };

  int64_t sumFrom(size_t axis) const { return axis < count_ ? axes_[axis].sum : 0; }

  // Adds the axes of a tensor. A negative step is replaced by a positive one, which counts from the
  // other end of the axis.
  void add(const TensorDesc& desc, int64_t sign) {
    for (size_t i = 0; i < desc.rank(); ++i) {
      const int64_t step = sign * desc.strides[i] * sizeOf(desc.dtype);
      const int64_t most = desc.sizes[i] - 1;
      if (step == 0 || most == 0) continue;
      if (step < 0) {
        least_ -= step * most;
        most_ -= step * most;
      }
      const auto end = axes_.begin() + count_;
      const auto same = std::find_if(axes_.begin(), end,
                                     [&](const Axis& axis) { return axis.step == std::abs(step); });
      if (same != end) {
        same->most += most;
      } else if (count_ < kMostAxes) {
        axes_[count_++] = {std::abs(step), most};
      } else {
        fits_ = false;
      }
    }
  }

  // Returns whether the axes from `first` on have a sum from `least` to `most`. Also returns false
  // when the search has used up kMostVisits.
  bool search(size_t first, int64_t least, int64_t most) {
    if (++visits_ > kMostVisits || most < 0 || least > sumFrom(first)) return false;
    if (least <= 0) return true;  // the sum 0
    if (first == count_) return false;
    const Axis& axis = axes_[first];
    if (most / axis.divisor * axis.divisor < least) return false;
    const int64_t needed = std::max<int64_t>(0, least - sumFrom(first + 1));
    for (int64_t n = (needed + axis.step - 1) / axis.step;
         n <= std::min(axis.most, most / axis.step) && visits_ <= kMostVisits; ++n) {
      if (search(first + 1, least - n * axis.step, most - n * axis.step)) return true;
    }
    return false;
  }

  int64_t least_, most_;  // elements have a common byte if the sum of all axes is in this range
  std::array<Axis, kMostAxes> axes_;
  size_t count_ = 0;
  bool fits_ = true;
  int64_t visits_ = 0;
};

}  // namespace

Sharing sharingOf(const TensorInMemory& a, const TensorInMemory& b) {
  if (a.desc.numel() == 0 || b.desc.numel() == 0) return Sharing::Nothing;
  if (a.begin + spanOf(a.desc) <= b.begin || b.begin + spanOf(b.desc) <= a.begin) {
    return Sharing::Nothing;
  }
  const bool are_apart =
      std::any_of(a.desc.strides.begin(), a.desc.strides.end(), [&](int64_t stride) {
        return stride > 0 && areInDifferentColumns(a, b, stride * sizeOf(a.desc.dtype));
      });
  return are_apart ? Sharing::Nothing : CommonByteSearch(a, b).run();
}

bool areApart(const TensorInMemory& a, const TensorInMemory& b) {
  return sharingOf(a, b) == Sharing::Nothing;
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
