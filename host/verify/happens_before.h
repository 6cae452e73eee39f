#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "host/program/ids.h"

namespace heddle::host {

// A set of posted operations (collectives and transfers), which are numbered from 0. The set stores
// ranges of numbers, because most sets contain all numbers up to a limit and few larger ones.
class PostSet {
 public:
  bool has(int32_t post) const {
    const auto after = std::upper_bound(ranges_.begin(), ranges_.end(), post,
                                        [](int32_t p, const Range& r) { return p < r.first; });
    return after != ranges_.begin() && post < std::prev(after)->second;
  }
  // Adds the posts [first, last).
  void add(int32_t first, int32_t last) {
    if (first >= last) return;
    auto begin = std::lower_bound(ranges_.begin(), ranges_.end(), first,
                                  [](const Range& r, int32_t p) { return r.second < p; });
    auto end = begin;
    for (; end != ranges_.end() && end->first <= last; ++end) {
      first = std::min(first, end->first);
      last = std::max(last, end->second);
    }
    ranges_.insert(ranges_.erase(begin, end), {first, last});
  }
  // Adds the posts of `other`.
  void join(const PostSet& other) {
    for (const auto& [first, last] : other.ranges_) add(first, last);
  }
  // Calls take(value) for each entry of the map whose key is in the set, and erases the entry.
  template <class Value, class Take>
  void forEachKnown(std::map<int32_t, Value>& by_post, const Take& take) const {
    if (by_post.empty()) return;
    for (const auto& [first, last] : ranges_) {
      const auto begin = by_post.lower_bound(first);
      auto end = begin;
      for (; end != by_post.end() && end->first < last; ++end) take(end->second);
      by_post.erase(begin, end);
    }
  }
  // Keeps only the posts that `other` contains too.
  void meet(const PostSet& other) {
    std::vector<Range> both;
    for (size_t i = 0, j = 0; i < ranges_.size() && j < other.ranges_.size();) {
      const Range& a = ranges_[i];
      const Range& b = other.ranges_[j];
      const Range common{std::max(a.first, b.first), std::min(a.second, b.second)};
      if (common.first < common.second) both.push_back(common);
      ++(a.second < b.second ? i : j);
    }
    ranges_ = std::move(both);
  }

 private:
  using Range = std::pair<int32_t, int32_t>;
  std::vector<Range> ranges_;  // sorted, with gaps between them
};

// The work that has certainly completed when a stream of a host program reaches some point. The
// steps of each stream are numbered from 1. The number of a step is called its time.
struct VectorClock {
  IdVector<StreamId, int32_t> streams;  // the steps up to this time have completed
  PostSet posts;                        // the posted operations that have completed

  explicit VectorClock(size_t stream_count = 0) : streams(stream_count, 0) {}

  // knowsStep() and knowsPost() return whether the step or the posted operation has certainly
  // completed.
  bool knowsStep(StreamId stream, int32_t time) const { return streams[stream] >= time; }
  bool knowsPost(int32_t post) const { return posts.has(post); }
  void addPost(int32_t post) { posts.add(post, post + 1); }
  // Adds the work that is completed in `other`.
  void join(const VectorClock& other) {
    for (StreamId s : streams.ids()) streams[s] = std::max(streams[s], other.streams[s]);
    posts.join(other.posts);
  }
  // Keeps only the work that is completed in both clocks.
  void meet(const VectorClock& other) {
    for (StreamId s : streams.ids()) streams[s] = std::min(streams[s], other.streams[s]);
    posts.meet(other.posts);
  }
};

}  // namespace heddle::host
