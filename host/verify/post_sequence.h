#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <tuple>
#include <vector>

#include "comm/communicator.h"

namespace heddle::host {

// Lists and compares the operations that ranks post: collectives and transfers. A channel is a
// sequence of operations that must match by position. The n-th post of one rank to the channel must
// match the n-th post of every other rank to it. Two files use this header, both before the ranks
// issue any operation:
//   host/verify/match_collectives.h compares the unrolled programs of all ranks, in one process.
//   host/run/match_collectives_across_ranks.h compares the plans of the ranks of a job.

// Identifies a channel. A channel contains one of the following:
//   the collectives of a team that have equal carriers
//   the transfers in a team from one rank to one other rank, with any carriers
// The type `Team` is a list of the team's members, as ranks of the job, or an index into a table of
// such lists.
template <class Team>
struct PostChannel {
  Team team;
  comm::Carrier carrier = {};  // carrier of the collectives; the default for transfers
  int sender = -1;             // rank of the job that sends; -1: the channel has collectives
  int receiver = -1;           // rank of the job that receives; -1: the channel has collectives

  bool isTransfer() const { return sender >= 0; }
  bool operator<(const PostChannel& other) const {
    return std::tie(team, carrier, sender, receiver) <
           std::tie(other.team, other.carrier, other.sender, other.receiver);
  }
};

// The posts of one rank to one channel, in order.
template <class Post>
struct PostSequence {
  std::vector<Post> posts;  // the first posts; later ones may be counted but not stored
  size_t total = 0;         // number of known posts, at least posts.size()
  bool open = false;        // true: more posts may follow, but they are unknown

  // Counts a post. `known` is false if it is unknown whether the rank issues this post, or if the
  // caller cannot store it. All later posts then count as unknown too. Returns whether the post
  // counts as known.
  bool extend(bool known) {
    open = open || !known;
    if (!open) ++total;
    return !open;
  }
};

// Returns the position of the first posts that do not match, or nullopt if there are none. If all
// stored posts match but one sequence is shorter, the position is the end of the shorter sequence.
// Exception: if the shorter sequence is open, the result is nullopt. fits(a, b) returns whether two
// posts match. firstMismatch() calls fits() only for positions at which both sequences store a
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

// Finds the steps that every run executes: those outside of branches that the run decides. The
// caller walks over the steps in order. All jumps are forward: an If jumps past its first body, and
// the end of the first body jumps past the second body.
class DecidedSteps {
 public:
  // Call this at a step that may jump to step `target`.
  void jump(size_t target) { end_ = std::max(end_, target); }
  // Returns whether every run executes the step. The step must not be one that may jump.
  bool has(size_t step) const { return step >= end_; }

 private:
  size_t end_ = 0;
};

}  // namespace heddle::host
