#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "host/program/program.h"
#include "host/unroll/unroll.h"
#include "host/verify/post_sequence.h"

namespace heddle::host {

// Checks that the unrolled programs of all ranks of a job (host/unroll/unroll.h) post matching
// operations:
// - The members of a team post the same collectives in the same order.
// - Each send from one rank to another matches a receive on the other rank, and vice versa.
//
// Limits: - Some branches are decided only during a run. If such a branch contains a post to a
//           channel (host/verify/post_sequence.h), the matcher compares neither this post nor any
//           later post to the channel.
//         - The matcher stores at most 2^27 posts of all ranks together. Posts beyond this limit
//           are not compared.
// Costs:  Usually, time and memory are about linear in the number of posts.
class CollectiveMatcher {
 public:
  // `program` must not contain Call instructions, and must outlive the matcher. `ranks` is the
  // number of ranks of the job.
  CollectiveMatcher(const Program& program, int64_t ranks);
  // Adds the posts of one rank. Call add() once for each rank of the job. The matcher does not keep
  // a reference to `unrolled`.
  void add(const Unrolled& unrolled);
  // Compares the posts of all ranks. If two ranks do not match, throws UserError that names both
  // ranks, their posts and the instructions.
  void check() const;

 private:
  // A post of one rank. Equal posts, of several ranks or of several loop iterations, are stored
  // once.
  struct Post {
    const Instruction* instruction;
    InstructionIndex index;
    comm::Operation operation;
    Communicate::Pair slots;  // slots of a collective; kNoSlot for a barrier or a transfer
    bool operator<(const Post& other) const;
  };
  // The posts of one rank to one channel, as indices into posts_.
  struct Sequence : PostSequence<uint32_t> {
    int64_t rank = 0;
  };
  using ChannelKey = PostChannel<size_t>;  // team: index into teams_
  struct Channel {
    ChannelKey key;
    // Collectives: one sequence per member of the team. Transfers: the sequence of the sender, then
    // the sequence of the receiver.
    std::vector<Sequence> sequences;
  };
  struct Mismatch {
    size_t at;  // the first position at which the posts of the two sequences do not match
    size_t a;   // index of a sequence that has a post at this position
    size_t b;   // index of the other sequence
  };

  struct KnownTeam {
    Team team;
    std::unordered_map<int, size_t> index_of;  // the index in teams_ of each rank's team
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
  std::vector<std::vector<int>> teams_;  // the members of each team, as ranks of the job
  std::map<std::vector<int>, size_t> team_index_;
  std::vector<KnownTeam> known_teams_;
  size_t stored_ = 0;    // number of posts in all sequences
  bool decided_ = true;  // true: every run executes the step that add() processes
};

}  // namespace heddle::host
