#include "ir/reference/selection.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <numeric>

#include "ir/base/error.h"
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
  // Both lists are sorted, so one pass merges them.
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

std::vector<int64_t> IndexSet::indices() const {
  std::vector<int64_t> result;
  result.reserve(static_cast<size_t>(count_));
  for (const Range& range : ranges_) {
    for (int64_t i = range.begin; i < range.end; ++i) result.push_back(i);
  }
  return result;
}

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

HostTensor elementsAt(const HostTensor& value, const std::vector<std::vector<int64_t>>& positions) {
  std::vector<int64_t> sizes;
  for (const std::vector<int64_t>& axis : positions) {
    sizes.push_back(static_cast<int64_t>(axis.size()));
  }
  HostTensor out(value.dtype, sizes);
  if (out.numel() == 0) return out;
  const size_t element = static_cast<size_t>(sizeOf(value.dtype));
  if (positions.empty()) {
    std::memcpy(out.data.get(), value.data.get(), element);
    return out;
  }
  const std::vector<int64_t>& last = positions.back();
  const auto row = static_cast<int64_t>(last.size());
  const bool contiguous =
      last.back() - last.front() + 1 == row && std::is_sorted(last.begin(), last.end());
  const auto copyRow = [&](int64_t r) {
    int64_t from = 0;  // index of the row in `value`
    int64_t rest = r;
    int64_t stride = 1;
    for (size_t axis = positions.size() - 1; axis-- > 0;) {
      from += positions[axis][static_cast<size_t>(rest % sizes[axis])] * stride;
      rest /= sizes[axis];
      stride *= value.sizes[axis];
    }
    const std::byte* source =
        value.data.get() + static_cast<size_t>(from * value.sizes.back()) * element;
    std::byte* to = out.data.get() + static_cast<size_t>(r * row) * element;
    if (contiguous) {
      std::memcpy(to, source + static_cast<size_t>(last.front()) * element, last.size() * element);
      return;
    }
    for (int64_t i : last) {
      std::memcpy(to, source + static_cast<size_t>(i) * element, element);
      to += element;
    }
  };
  inParallel(out.numel() / row, std::max<int64_t>(1, 32768 / row), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) copyRow(r);
  });
  return out;
}

HostTensor elementsOf(const HostTensor& value, const Selection& held, const Selection& wanted) {
  if (held == wanted) return value;
  std::vector<std::vector<int64_t>> positions;
  for (size_t axis = 0; axis < wanted.axes.size(); ++axis) {
    std::vector<int64_t>& list = positions.emplace_back(wanted.axes[axis].indices());
    // Both lists are ascending, so one walk over the ranges of `held` finds all positions.
    const std::vector<IndexSet::Range>& ranges = held.axes[axis].ranges();
    size_t at = 0;
    int64_t before = 0;
    for (int64_t& index : list) {
      for (; at < ranges.size() && index >= ranges[at].end; ++at) {
        before += ranges[at].end - ranges[at].begin;
      }
      HEDDLE_CHECK(at < ranges.size() && index >= ranges[at].begin,
                   "element {} of axis {} was not computed", index, axis);
      index = before + index - ranges[at].begin;
    }
  }
  return elementsAt(value, positions);
}

}  // namespace heddle
