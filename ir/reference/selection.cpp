#include "ir/reference/selection.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <numeric>

#include "ir/base/check.h"
#include "ir/reference/parallel.h"

namespace heddle {

IndexSet IndexSet::all(int64_t extent) {
  IndexSet set;
  set.add(Range{0, extent});
  return set;
}

IndexSet IndexSet::of(std::vector<int64_t> indices) {
  std::sort(indices.begin(), indices.end());
  IndexSet set;
  for (int64_t index : indices) {
    std::vector<Range>& ranges = set.ranges_;
    if (!ranges.empty() && index < ranges.back().end) continue;
    ++set.count_;
    if (!ranges.empty() && index == ranges.back().end) {
      ++ranges.back().end;
    } else {
      ranges.push_back({index, index + 1});
    }
  }
  return set;
}

void IndexSet::add(Range range) {
  if (range.begin >= range.end) return;
  // The ranges from `first` up to, but not including, `last` touch the new one and merge with it.
  const auto first = std::lower_bound(ranges_.begin(), ranges_.end(), range.begin,
                                      [](const Range& r, int64_t begin) { return r.end < begin; });
  auto last = first;
  for (; last != ranges_.end() && last->begin <= range.end; ++last) {
    range = {std::min(range.begin, last->begin), std::max(range.end, last->end)};
    count_ -= last->end - last->begin;
  }
  count_ += range.end - range.begin;
  ranges_.insert(ranges_.erase(first, last), range);
}

void IndexSet::add(const IndexSet& other) {
  if (other.ranges_.size() <= 1) {
    for (const Range& range : other.ranges_) add(range);
    return;
  }
  // Both lists are sorted, so one loop merges them.
  std::vector<Range> all;
  all.reserve(ranges_.size() + other.ranges_.size());
  std::merge(ranges_.begin(), ranges_.end(), other.ranges_.begin(), other.ranges_.end(),
             std::back_inserter(all),
             [](const Range& a, const Range& b) { return a.begin < b.begin; });
  ranges_.clear();
  count_ = 0;
  for (const Range& range : all) {
    if (!ranges_.empty() && range.begin <= ranges_.back().end) {
      ranges_.back().end = std::max(ranges_.back().end, range.end);
    } else {
      ranges_.push_back(range);
    }
  }
  for (const Range& range : ranges_) count_ += range.end - range.begin;
}

std::vector<int64_t> IndexSet::indices() const { return indicesOf(ranges_); }

Selection Selection::all(const std::vector<int64_t>& sizes) {
  Selection selection;
  for (int64_t size : sizes) selection.axes.push_back(IndexSet::all(size));
  return selection;
}

std::vector<int64_t> Selection::sizes() const {
  std::vector<int64_t> sizes;
  for (const IndexSet& axis : axes) sizes.push_back(axis.count());
  return sizes;
}

int64_t Selection::count() const {
  int64_t count = 1;
  for (const IndexSet& axis : axes) count *= axis.count();
  return count;
}

void Selection::add(const Selection& other) {
  for (size_t i = 0; i < axes.size(); ++i) axes[i].add(other.axes[i]);
}

namespace {

// Returns the positions of the indices `wanted` among the indices `held`, as ranges. A wanted range
// lies in one held range, because held ranges do not touch.
IndexSet positionsOf(const IndexSet& held, const IndexSet& wanted, size_t axis) {
  const std::vector<IndexSet::Range>& ranges = held.ranges();
  IndexSet positions;
  size_t at = 0;
  int64_t before = 0;
  for (const IndexSet::Range& range : wanted.ranges()) {
    for (; at < ranges.size() && range.begin >= ranges[at].end; ++at) {
      before += ranges[at].end - ranges[at].begin;
    }
    const bool is_held =
        at < ranges.size() && range.begin >= ranges[at].begin && range.end <= ranges[at].end;
    HEDDLE_CHECK(is_held, "elements {} to {} of axis {} were not computed", range.begin,
                 range.end - 1, axis);
    const int64_t shift = before - ranges[at].begin;
    positions.add({range.begin + shift, range.end + shift});
  }
  return positions;
}

// Returns a dense tensor with the selected elements of the dense tensor `value`.
HostTensor elementsAt(const HostTensor& value, const Selection& positions) {
  const std::vector<int64_t> sizes = positions.sizes();
  HostTensor out(value.dtype, sizes);
  if (out.numel() == 0) return out;
  const size_t element = sizeOf(value.dtype);
  if (sizes.empty()) {
    std::memcpy(out.data.get(), value.data.get(), element);
    return out;
  }
  std::vector<std::vector<int64_t>> outer;  // the indices along each axis except the last
  for (size_t axis = 0; axis + 1 < sizes.size(); ++axis) {
    outer.push_back(positions.axes[axis].indices());
  }
  const int64_t row = sizes.back();
  const auto copyRow = [&](int64_t r) {
    int64_t from = 0;  // index of the row in `value`
    int64_t rest = r;
    int64_t stride = 1;
    for (size_t axis = outer.size(); axis-- > 0;) {
      from += outer[axis][rest % sizes[axis]] * stride;
      rest /= sizes[axis];
      stride *= value.sizes[axis];
    }
    const std::byte* source =
        value.data.get() + static_cast<size_t>(from * value.sizes.back()) * element;
    std::byte* to = out.data.get() + static_cast<size_t>(r * row) * element;
    for (const IndexSet::Range& range : positions.axes.back().ranges()) {
      const size_t bytes = static_cast<size_t>(range.end - range.begin) * element;
      std::memcpy(to, source + static_cast<size_t>(range.begin) * element, bytes);
      to += bytes;
    }
  };
  inParallel(out.numel() / row, std::max<int64_t>(1, 32768 / row), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) copyRow(r);
  });
  return out;
}

}  // namespace

HostTensor elementsOf(const HostTensor& value, const Selection& held, const Selection& wanted) {
  if (held == wanted) return value;
  Selection positions;
  for (size_t axis = 0; axis < wanted.axes.size(); ++axis) {
    positions.axes.push_back(positionsOf(held.axes[axis], wanted.axes[axis], axis));
  }
  return elementsAt(value, positions);
}

}  // namespace heddle
