#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace heddle::host {

// What has surely happened at one place: up to which step of each stream, and which posted
// operations are done.
struct Clock {
  std::vector<int32_t> streams;
  std::vector<bool> posts;  // shorter than the number of posts: the rest is not known

  explicit Clock(size_t stream_count = 0) : streams(stream_count, 0) {}

  bool knowsStep(int32_t stream, int32_t time) const {
    return streams[static_cast<size_t>(stream)] >= time;
  }
  bool knowsPost(int32_t post) const {
    return static_cast<size_t>(post) < posts.size() && posts[static_cast<size_t>(post)];
  }
  void addPost(int32_t post) {
    if (posts.size() <= static_cast<size_t>(post)) posts.resize(static_cast<size_t>(post) + 1);
    posts[static_cast<size_t>(post)] = true;
  }
  // Now both are known.
  void join(const Clock& other) {
    for (size_t s = 0; s < streams.size(); ++s) streams[s] = std::max(streams[s], other.streams[s]);
    if (posts.size() < other.posts.size()) posts.resize(other.posts.size());
    for (size_t p = 0; p < other.posts.size(); ++p) {
      if (other.posts[p]) posts[p] = true;
    }
  }
  // Only what both know.
  void meet(const Clock& other) {
    for (size_t s = 0; s < streams.size(); ++s) streams[s] = std::min(streams[s], other.streams[s]);
    posts.resize(std::min(posts.size(), other.posts.size()));
    for (size_t p = 0; p < posts.size(); ++p) posts[p] = posts[p] && other.posts[p];
  }
};

}  // namespace heddle::host
