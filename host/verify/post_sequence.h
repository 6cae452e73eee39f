#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <tuple>
#include <vector>

#include "comm/communicator.h"

namespace heddle::host {

// Sequences of posts and their comparison. Ranks match posts by their order on a channel. Two files
// list the posts of each rank by channel and compare them before they are issued:
// host/verify/match_collectives.h (the unrolled programs of all ranks, in one process) and
// host/run/match_collectives_across_ranks.h (the plans of the ranks of a job).

// A channel: the collectives of a team with one carrier, or the transfers in a team from one rank
// to another. `Team` is the list of World ranks, or an index that stands for it.
template <class Team>
struct PostChannel {
  Team team;
  comm::Carrier carrier = {};  // of collectives; transfers share one channel whatever their carrier
  int sender = -1;             // World ranks; -1: collectives
  int receiver = -1;

  bool isTransfer() const { return sender >= 0; }
  bool operator<(const PostChannel& other) const {
    return std::tie(team, carrier, sender, receiver) <
           std::tie(other.team, other.carrier, other.sender, other.receiver);
  }
};

// The posts of one rank to one channel, in order.
template <class Post>
struct PostSequence {
  std::vector<Post> posts;  // the stored posts: the first ones of the rank
  size_t total = 0;         // number of known posts; it exceeds posts.size() if not all are stored
  bool open = false;        // later posts are unknown

  // Counts a post. Returns false if it is unknown; then all later ones are unknown too.
  bool extend(bool known) {
    open = open || !known;
    if (!open) ++total;
    return !open;
  }
};

// Returns the index of the first posts that do not match, or nullopt if all known posts match. If
// one sequence ends before the other, the result is the total of the shorter one. fits(a, b)
// returns whether two posts match. It is called only for positions at which both sequences store a
// post.
template <class Post, class Fits>
std::optional<size_t> firstMismatch(const PostSequence<Post>& a, const PostSequence<Post>& b,
                                    const Fits& fits) {
  const size_t stored = std::min(a.posts.size(), b.posts.size());
  for (size_t i = 0; i < stored; ++i) {
    if (!fits(a.posts[i], b.posts[i])) return i;
  }
  const auto& shorter = a.total < b.total ? a : b;
  if (a.total == b.total || shorter.open) return std::nullopt;
  return shorter.total;
}

// Finds the steps of a list that every run executes. These are the steps outside of branches that
// the run decides. Walk the list from its beginning and report the jumps. Jumps only go forward: an
// If jumps past its first body, and the end of the first body jumps past the second one.
class DecidedSteps {
 public:
  // The current step may jump to step `target`.
  void jump(size_t target) { end_ = std::max(end_, target); }
  bool has(size_t step) const { return step >= end_; }

 private:
  size_t end_ = 0;
};

}  // namespace heddle::host
