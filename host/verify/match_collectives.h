#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "host/program/program.h"
#include "host/unroll/unroll.h"
#include "host/verify/post_sequence.h"

namespace heddle::host {

// Compares what all ranks of a job will post, from their unrolled programs:
// - the members of a team post the same collectives in the same order
// - each send from one rank to another matches a receive there, and each receive matches a send
//
// Limits: - After a branch that the run decides, posts to the channels that the branch uses are
//           unknown. They are not compared.
//         - All ranks together store at most 2^27 posts. Later posts are not compared.
// Costs:  Time and memory are linear in the number of posts.
class CollectiveMatcher {
 public:
  // `program` has no calls, and must outlive the matcher.
  CollectiveMatcher(const Program& program, int64_t ranks);
  // Adds the posts of one rank. Call add() once per rank of the job. The matcher keeps no reference
  // to `unrolled`.
  void add(const Unrolled& unrolled);
  // Compares the posts of all ranks. UserError names two ranks, the post of each, and the
  // instructions.
  void check() const;

 private:
  // Equal posts of all ranks and loop trips are stored once.
  struct Post {
    const Instruction* instruction;
    InstructionIndex index;
    comm::Operation operation;
    Communicate::Pair slots;  // of a collective
    bool operator<(const Post& other) const;
  };
  // The posts of one rank, as indices into posts_.
  struct Sequence : PostSequence<uint32_t> {
    int64_t rank = 0;
  };
  using ChannelKey = PostChannel<size_t>;  // team: index into teams_
  // The sequences of the posts to one channel. A channel of collectives has one sequence per member
  // of the team. A channel of transfers has those of the sender and the receiver.
  struct Channel {
    ChannelKey key;
    std::vector<Sequence> sequences;
  };
  struct Mismatch {
    size_t at;  // index of the first posts that do not match
    size_t a;   // index of a sequence that has a post there
    size_t b;   // index of the other sequence
  };

  size_t teamIndex(const Unrolled& unrolled, const Team& team);
  Channel& channelOf(const ChannelKey& key);
  void post(Sequence& sequence, const Post& what);
  void collective(const Unrolled& unrolled, const UnrolledStep& step, const Communicate& x);
  void rootTransfers(size_t team, int me, const UnrolledStep& step, const Communicate& x);
  void transfer(size_t team, int me, const UnrolledStep& step, const comm::Operation& operation);
  std::optional<Mismatch> compare(const Channel& channel, size_t a, size_t b) const;
  bool isCrossed(const Sequence& a, const Sequence& b, const Post& in_a, const Post& in_b) const;
  std::string text(const Sequence& sequence, size_t at) const;
  [[noreturn]] void refuse(const Channel& channel, const Mismatch& mismatch) const;

  const Program& program_;
  const int64_t ranks_;
  Meshes meshes_;
  std::vector<Post> posts_;
  std::map<Post, uint32_t> post_index_;
  std::vector<Channel> channels_;
  std::map<ChannelKey, size_t> channel_index_;
  std::vector<std::vector<int>> teams_;  // members
  std::map<std::vector<int>, size_t> team_index_;
  std::vector<std::pair<Team, size_t>> own_teams_;  // of the rank that is being added
  size_t stored_ = 0;                               // posts in all sequences
  bool decided_ = true;  // every run executes the step that is being added
};

}  // namespace heddle::host
