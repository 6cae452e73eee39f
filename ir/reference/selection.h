#pragma once

#include <cstdint>
#include <vector>

#include "ir/types/host_tensor.h"

namespace heddle {

// A set of indices of one axis, stored as disjoint ranges in ascending order that do not touch.
class IndexSet {
 public:
  using Range = IndexRange;

  IndexSet() = default;  // no index
  static IndexSet all(int64_t extent);
  // Returns the set of these indices, which may be in any order and contain repetitions.
  static IndexSet of(std::vector<int64_t> indices);

  // Adds the indices of `range`, which may be empty.
  void add(Range range);
  void add(const IndexSet& other);

  const std::vector<Range>& ranges() const { return ranges_; }
  int64_t count() const { return count_; }
  bool empty() const { return count_ == 0; }
  bool isAll(int64_t extent) const { return count_ == extent; }
  // Returns all indices, ascending. Needs 8 bytes for each of them.
  std::vector<int64_t> indices() const;

  bool operator==(const IndexSet&) const = default;

 private:
  std::vector<Range> ranges_;
  int64_t count_ = 0;
};

// A set of elements of one tensor: every combination of the selected indices of its axes. A tensor
// without axes has one element, which is always selected.
struct Selection {
  std::vector<IndexSet> axes;

  static Selection all(const std::vector<int64_t>& sizes);
  // Returns the number of selected indices of each axis: the sizes of a dense tensor that holds
  // only the selected elements.
  std::vector<int64_t> sizes() const;
  int64_t count() const;
  // Adds the indices of `other` to each axis. The selection may then contain more elements than the
  // union of both. For example, adding element (1, 1) to element (0, 0) also selects (0, 1) and (1,
  // 0).
  void add(const Selection& other);

  bool operator==(const Selection&) const = default;
};

// Returns the elements `wanted` of a tensor. `value` holds the elements `held` of this tensor.
// `held` must contain all elements of `wanted`. If `held` and `wanted` are equal, the result shares
// the bytes of `value`.
HostTensor elementsOf(const HostTensor& value, const Selection& held, const Selection& wanted);

}  // namespace heddle
