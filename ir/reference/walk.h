#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "ir/reference/elements.h"

namespace heddle {

// Walks over the elements of a row-major shape, and computes the index of each element in several
// strided operands. Neighbouring axes are merged if every operand can be read along them with one
// stride. The rows, that is, the elements along the last axis, then become longer and the walk
// becomes faster.
class Walk {
 public:
  Walk(std::vector<int64_t> sizes, std::vector<Access> operands)
      : sizes_(std::move(sizes)), operands_(std::move(operands)) {
    if (sizes_.empty()) {
      sizes_ = {1};
      for (Access& operand : operands_) operand.strides = {0};
    }
    merge();
  }

  // Walks over the elements with linear indices [begin, end). Calls visit(first, count, places) for
  // blocks of at most kBlock elements. A block has `count` elements from the linear index `first`
  // on. The indices of these elements in operand i are places[i], places[i] + stride(i), ...
  template <class Visit>
  void run(int64_t begin, int64_t end, Visit visit) const {
    std::vector<int64_t> places(operands_.size());
    const int64_t row = sizes_.back();
    for (int64_t at = begin; at < end;) {
      locate(at, places);
      const int64_t in_row = at % row;
      const int64_t stop = std::min(end, at - in_row + row);
      for (; at < stop;) {
        const int64_t count = std::min(kBlock, stop - at);
        visit(at, count, places);
        at += count;
        for (size_t i = 0; i < places.size(); ++i) places[i] += count * stride(i);
      }
    }
  }

  int64_t stride(size_t operand) const { return operands_[operand].strides.back(); }

 private:
  void merge() {
    for (size_t i = sizes_.size() - 1; i-- > 0;) {
      bool one = sizes_[i] == 1 || sizes_[i + 1] == 1 ||
                 std::all_of(operands_.begin(), operands_.end(), [&](const Access& operand) {
                   return operand.strides[i] == operand.strides[i + 1] * sizes_[i + 1];
                 });
      if (!one) continue;
      // Keep the strides of axis i + 1, unless this axis has only one element. The stride of an
      // axis with one element is meaningless.
      const size_t kept = sizes_[i + 1] == 1 ? i : i + 1;
      for (Access& operand : operands_) {
        operand.strides[i] = operand.strides[kept];
        operand.strides.erase(operand.strides.begin() + static_cast<int64_t>(i) + 1);
      }
      sizes_[i] *= sizes_[i + 1];
      sizes_.erase(sizes_.begin() + static_cast<int64_t>(i) + 1);
    }
  }

  void locate(int64_t linear, std::vector<int64_t>& places) const {
    for (size_t i = 0; i < places.size(); ++i) places[i] = operands_[i].offset;
    for (size_t axis = sizes_.size(); axis-- > 0;) {
      const int64_t coordinate = linear % sizes_[axis];
      linear /= sizes_[axis];
      for (size_t i = 0; i < places.size(); ++i) {
        places[i] += coordinate * operands_[i].strides[axis];
      }
    }
  }

  std::vector<int64_t> sizes_;
  std::vector<Access> operands_;
};

}  // namespace heddle
