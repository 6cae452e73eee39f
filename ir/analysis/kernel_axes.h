#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "ir/base/id.h"
#include "ir/graph/fusion.h"

namespace heddle {

using AxisNode = Id<struct AxisNodeTag>;      // one axis of one value
using KernelAxis = Id<struct KernelAxisTag>;  // one axis of the kernel: a class of AxisNodes

// A union-find structure of the axes of all values for which touch() was called. Axes that
// correspond in an expression are in one class. Each class is one axis of the kernel, except
// classes of axes with one element.
class KernelAxes {
 public:
  explicit KernelAxes(const Fusion& fusion) : fusion_(fusion) {}

  // Adds the axes of the value, unless an earlier call has added them. Call this before other
  // functions with this value.
  void touch(ValueId value) {
    size_t slot = slotOf(value);
    if (slots_[slot] != kEmpty) return;
    if (values_.size() * 2 >= slots_.size()) {
      grow();
      slot = slotOf(value);
    }
    slots_[slot] = static_cast<int32_t>(values_.size());
    values_.push_back(value);
    ranges_.push_back({parent_.endId()});
    size_t rank = fusion_.value(value).is_scalar ? 0 : fusion_.tensor(value).rank();
    for (size_t i = 0; i < rank; ++i) parent_.push_back(parent_.endId());
  }

  // Returns whether the axis becomes an axis of the kernel. An axis of one element (isUnitAxis() in
  // ir/types/tensor.h) does not.
  bool moves(ValueId value, size_t axis) const { return !isUnitAxis(fusion_.tensor(value), axis); }

  AxisNode id(ValueId value, size_t axis) const {
    return AxisNode(rangeOf(value).first.index() + axis);
  }

  AxisNode find(AxisNode a) {
    while (parent_[a] != a) {
      AxisNode& up = parent_[a];
      up = parent_[up];
      a = up;
    }
    return a;
  }

  // Merges the classes of two axes.
  void join(AxisNode a, AxisNode b) {
    a = find(a);
    b = find(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }

  // Numbers the classes whose axes have more than one element. Call this after the last join() and
  // before count(), numberOf() and classesOf().
  void number() {
    numbers_.assign(parent_.size(), KernelAxis());
    classes_.reserve(parent_.size());
    for (ValueId value : values_) {
      Range& range = rangeOf(value);
      range.begin = classes_.size();
      const size_t rank = fusion_.value(value).is_scalar ? 0 : fusion_.tensor(value).rank();
      for (size_t axis = 0; axis < rank; ++axis) {
        if (!moves(value, axis)) continue;
        KernelAxis& number = numbers_[find(id(value, axis))];
        if (!number.valid()) number = KernelAxis(count_++);
        classes_.push_back(number);
      }
      range.count = classes_.size() - range.begin;
    }
  }

  size_t count() const { return count_; }
  KernelAxis numberOf(AxisNode node) { return numbers_[find(node)]; }
  const std::vector<ValueId>& values() const { return values_; }

  // Returns the kernel axes of the value, in the order of its logical axes. Logical axes of one
  // element have no kernel axis.
  std::span<const KernelAxis> classesOf(ValueId value) const {
    const Range& range = rangeOf(value);
    return std::span(classes_).subspan(range.begin, range.count);
  }

 private:
  struct Range {
    AxisNode first;    // the node of axis 0
    size_t begin = 0;  // index in classes_ of the first class
    size_t count = 0;
  };

  // Returns the index in slots_ of the value, or the index of the empty entry where it belongs. The
  // hash table uses linear probing. Segmentation creates many such tables, and std::unordered_map
  // would allocate memory for each value.
  size_t slotOf(ValueId value) const {
    const size_t mask = slots_.size() - 1;
    size_t slot = value.index() * 0x9e3779b97f4a7c15u >> 32 & mask;
    while (slots_[slot] != kEmpty && values_[static_cast<size_t>(slots_[slot])] != value) {
      slot = (slot + 1) & mask;
    }
    return slot;
  }

  void grow() {
    slots_.assign(slots_.size() * 4, kEmpty);
    for (size_t i = 0; i < values_.size(); ++i) {
      slots_[slotOf(values_[i])] = static_cast<int32_t>(i);
    }
  }

  // Requires that the value was touched.
  const Range& rangeOf(ValueId value) const {
    return ranges_.at(static_cast<size_t>(slots_[slotOf(value)]));
  }
  Range& rangeOf(ValueId value) { return ranges_.at(static_cast<size_t>(slots_[slotOf(value)])); }

  static constexpr int32_t kEmpty = -1;
  const Fusion& fusion_;
  std::vector<int32_t> slots_ = std::vector<int32_t>(64, kEmpty);  // indices into values_
  std::vector<ValueId> values_;
  std::vector<Range> ranges_;  // parallel to values_
  IdVector<AxisNode, AxisNode> parent_;
  IdVector<AxisNode, KernelAxis> numbers_;
  std::vector<KernelAxis> classes_;  // the classes of the axes of all values
  size_t count_ = 0;
};

}  // namespace heddle
