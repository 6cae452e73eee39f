#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "host/program/program.h"
#include "host/unroll/unroll.h"

namespace heddle::host {

// What all ranks of a job post, side by side: the members of a team post the same collectives in
// the same order, and the sends from one rank to another are the receives there, none left over.
// From a branch that is decided at run time on, nothing is known of the teams that it posts to, so
// there only what came before is compared; so it is behind the first 2^27 posts of all ranks. In
// time and memory linear in the posts.
class CollectiveMatcher {
 public:
  // `program` has no calls, and outlives this.
  CollectiveMatcher(const Program& program, int64_t ranks);
  // Of each rank of the job once. The Unrolled need not live on.
  void add(const Unrolled& unrolled);
  // UserError that names two ranks, what each posts, and the instructions.
  void check() const;

 private:
  // Equal posts of all ranks and trips are one of these.
  struct Post {
    const Instruction* instruction;
    InstructionIndex index;
    comm::Operation operation;
    Communicate::Pair slots;  // of a collective
    bool operator<(const Post& other) const;
  };
  // What one rank posts where others must post something that fits.
  struct Line {
    int64_t rank = 0;
    std::vector<uint32_t> posts;  // into posts_
    bool open = false;            // what follows is not known
  };
  // Collectives of a team: a line a member. Transfers: that of the sender, that of the receiver.
  struct Channel {
    size_t team;  // in teams_
    bool transfers = false;
    std::vector<Line> lines;
  };
  using Key = std::tuple<size_t, comm::Carrier, int, int>;  // team, sender, receiver
  struct Difference {
    size_t at;  // both agree on what is before
    size_t a;   // two lines, the first of which has something there
    size_t b;
    bool crossed = false;  // alike, but each has what the other posts at another place
  };

  size_t channelOf(const Key& key);
  size_t teamOf(const Unrolled& unrolled, const Team& team);
  void post(Line& line, const Post& what);
  void collective(const Unrolled& unrolled, const UnrolledStep& step, const Communicate& x);
  void oneWay(size_t team, int me, const UnrolledStep& step, const Communicate& x);
  void transfer(size_t team, int me, const UnrolledStep& step, const comm::Operation& operation);
  std::optional<Difference> compare(const Channel& channel, size_t a, size_t b) const;
  bool isCrossed(const Line& a, const Line& b, const Post& in_a, const Post& in_b) const;
  std::string text(const Line& line, size_t at) const;
  [[noreturn]] void refuse(const Channel& channel, const Difference& difference) const;

  const Program& program_;
  const int64_t ranks_;
  Meshes meshes_;
  std::vector<Post> posts_;
  std::map<Post, uint32_t> known_;
  std::vector<Channel> channels_;
  std::map<Key, size_t> channel_of_;
  std::vector<std::vector<int>> teams_;  // members
  std::map<std::vector<int>, size_t> team_of_;
  std::vector<std::pair<Team, size_t>> mine_;  // of the rank that is being added
  size_t kept_ = 0;                            // posts in all lines
  bool decided_ = true;  // the step that is being added is in no branch of the run
};

}  // namespace heddle::host
