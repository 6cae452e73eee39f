#include "host/run/match_collectives_across_ranks.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "comm/operation.h"
#include "host/verify/collectives_fit.h"
#include "host/verify/post_sequence.h"
#include "ir/base/check.h"

namespace heddle::host {
namespace {

using comm::CollectiveKind;
using comm::Operation;
using nlohmann::json;

// A channel (PostChannel in host/verify/post_sequence.h) consists of the collectives of one
// communicator, or of the transfers from one rank to another. kSentInFull is the largest number of
// posts of a channel that a rank sends in full. For all later posts together, the rank sends only
// their number and one hash.
constexpr size_t kSentInFull = 1024;

struct PlannedPost {
  InstructionIndex instruction = -1;
  Operation operation;  // without buffers and lists of counts
};

using Channel = PostChannel<std::vector<int>>;

bool isBetween(const Channel& channel, int a, int b) {
  if (channel.isTransfer()) {
    return (channel.sender == a && channel.receiver == b) ||
           (channel.sender == b && channel.receiver == a);
  }
  const auto has = [&](int rank) {
    return std::find(channel.team.begin(), channel.team.end(), rank) != channel.team.end();
  };
  return has(a) && has(b);
}

// The posts of one rank to one channel. The first kSentInFull posts are stored and sent in full.
struct Sequence : PostSequence<PlannedPost> {
  uint64_t rest_hash = 0;  // hash of all posts after the first kSentInFull
};
using Sequences = std::map<Channel, Sequence>;

void addPost(Sequence& sequence, const PlannedPost& post, bool decided) {
  if (!sequence.extend(decided)) return;
  if (sequence.posts.size() < kSentInFull) {
    sequence.posts.push_back(post);
    return;
  }
  // The hash must be equal on both ends of a transfer, so `kind` and `peer` are replaced.
  Operation alike = post.operation;
  if (comm::isPointToPoint(alike.kind)) alike.kind = CollectiveKind::Send;
  alike.peer = 0;
  sequence.rest_hash = sequence.rest_hash * 1099511628211u +
                       std::hash<std::string>{}(comm::describe(alike)) +
                       static_cast<uint64_t>(alike.dtype);
}

// Lists the posts of the plan by channel. Teams of one rank need no comparison.
Sequences postsOf(const Plan& plan, int rank) {
  Sequences sequences;
  DecidedSteps decided;
  for (size_t step = 0; step < plan.steps.size(); ++step) {
    // Only BranchStep and GotoStep jump.
    if (const auto* branch = std::get_if<BranchStep>(&plan.steps[step])) {
      decided.jump(static_cast<size_t>(branch->target));
    }
    if (const auto* skip = std::get_if<GotoStep>(&plan.steps[step])) {
      decided.jump(static_cast<size_t>(skip->target));
    }
    // Only a CollectiveStep posts.
    const auto* post = std::get_if<CollectiveStep>(&plan.steps[step]);
    if (post == nullptr || post->communicator->size() == 1) continue;
    for (int32_t i = 0; i < post->operations; ++i) {
      PlannedPost planned{plan.instruction_of[step], plan.operations[post->first + i]};
      Channel channel{plan.teams[post->team], post->carrier};
      if (comm::isPointToPoint(planned.operation.kind)) {
        const int peer = channel.team.at(planned.operation.peer);
        const bool sends = planned.operation.kind == CollectiveKind::Send;
        channel.carrier = {};
        channel.sender = sends ? rank : peer;
        channel.receiver = sends ? peer : rank;
      }
      addPost(sequences[channel], planned, decided.has(step));
    }
  }
  return sequences;
}

std::string encodePosts(const Sequences& sequences) {
  json all = json::array();
  for (const auto& [channel, sequence] : sequences) {
    json sent = json::array();
    for (const PlannedPost& one : sequence.posts) {
      const Operation& op = one.operation;
      sent.push_back({one.instruction, static_cast<int>(op.kind), static_cast<int>(op.dtype),
                      op.count, static_cast<int>(op.reduce), op.root, op.peer});
    }
    all.push_back({channel.team, channel.carrier.ctas, channel.carrier.copy_channel, channel.sender,
                   channel.receiver, sequence.total, sequence.rest_hash, sequence.open,
                   std::move(sent)});
  }
  return all.dump();
}

// Parses the posts of rank `peer`. Throws UserError if the text is not a list of posts, that is, if
// rank `peer` has called World::exchange() for a different purpose.
Sequences decodePosts(const std::string& text, int peer) {
  Sequences sequences;
  const json all = json::parse(text, nullptr, false);
  HEDDLE_USER_CHECK(
      all.is_array(),
      "rank {} does not compare posts now: it is in another call, or the sizes are not new to it",
      peer);
  for (const json& one : all) {
    Sequence& sequence =
        sequences[Channel{one.at(0), {one.at(1), one.at(2)}, one.at(3), one.at(4)}];
    sequence.total = one.at(5);
    sequence.rest_hash = one.at(6);
    sequence.open = one.at(7);
    for (const json& sent : one.at(8)) {
      PlannedPost post;
      post.instruction = sent.at(0);
      post.operation.kind = static_cast<CollectiveKind>(sent.at(1).get<int>());
      post.operation.dtype = static_cast<DType>(sent.at(2).get<int>());
      post.operation.count = sent.at(3);
      post.operation.reduce = static_cast<ReduceOp>(sent.at(4).get<int>());
      post.operation.root = sent.at(5);
      post.operation.peer = sent.at(6);
      sequence.posts.push_back(std::move(post));
    }
  }
  return sequences;
}

class Comparison {
 public:
  Comparison(int rank, int peer, const RunResources& resources)
      : rank_(rank), peer_(peer), resources_(resources) {}

  void run(const Sequences& mine, const Sequences& theirs) const {
    static const Sequence kNothing;
    const auto of = [&](const Sequences& sequences, const Channel& channel) -> const Sequence& {
      const auto found = sequences.find(channel);
      return found == sequences.end() ? kNothing : found->second;
    };
    for (const Sequences* sequences : {&mine, &theirs}) {
      for (const auto& [channel, sequence] : *sequences) {
        if (isBetween(channel, rank_, peer_)) compare(of(mine, channel), of(theirs, channel));
      }
    }
  }

 private:
  void compare(const Sequence& mine, const Sequence& theirs) const {
    const auto fits = [](const PlannedPost& a, const PlannedPost& b) {
      return collectivesFit(a.operation, b.operation);
    };
    if (const std::optional<size_t> at = firstMismatch(mine, theirs, fits)) {
      refuse(postAt(mine, *at), postAt(theirs, *at));
    }
    const bool all_known = mine.total == theirs.total && !mine.open && !theirs.open;
    if (all_known && mine.rest_hash != theirs.rest_hash) {
      userError("{}: ranks {} and {} post different operations after the first {}",
                resources_.text(mine.posts.back().instruction), rank_, peer_, kSentInFull);
    }
  }
  // Returns the post at this position, or nullptr after the end of the sequence. If the post was
  // not sent in full, returns the last post that was sent in full.
  static const PlannedPost* postAt(const Sequence& sequence, size_t at) {
    if (at >= sequence.total) return nullptr;
    return &sequence.posts[std::min(at, sequence.posts.size() - 1)];
  }
  [[noreturn]] void refuse(const PlannedPost* mine, const PlannedPost* theirs) const {
    const PlannedPost& named = mine != nullptr ? *mine : *theirs;
    userError("{}: rank {} posts {} where rank {} posts {}", resources_.text(named.instruction),
              rank_, textOf(mine), peer_, textOf(theirs));
  }
  static std::string textOf(const PlannedPost* post) {
    return post == nullptr ? "nothing" : postText(post->operation);
  }

  int rank_;
  int peer_;
  const RunResources& resources_;
};

}  // namespace

// Only NCCL needs the comparison. All other transports compare each operation when it is posted.
CrossRankMatcher::CrossRankMatcher(comm::World* world, bool communicates, size_t most)
    : world_(world),
      most_(most),
      exchanges_(world != nullptr && world->size() > 1 && communicates &&
                 world->transport() == "nccl") {}

void CrossRankMatcher::agree(const Plan& plan, RunResources& resources) {
  if (!exchanges_ || plan.agreed == round_) return;
  if (isNew(plan.sizes_hash)) compare(plan, resources);
  plan.agreed = round_;
}

// Returns whether no earlier run in this round had the sizes with this hash, and stores the hash.
// The result is the same on all ranks, because it does not depend on the plans that a rank has
// cached.
bool CrossRankMatcher::isNew(uint64_t sizes_hash) {
  if (agreed_.count(sizes_hash) > 0) return false;
  if (agreed_.size() == most_) {
    agreed_.clear();
    ++round_;
  }
  agreed_.insert(sizes_hash);
  return true;
}

void CrossRankMatcher::compare(const Plan& plan, RunResources& resources) {
  resources.job.begin(comm::Activity::MatchingPosts);
  const Sequences mine = postsOf(plan, world_->rank());
  const std::vector<std::string> all = world_->exchange(encodePosts(mine));
  for (int peer = 0; peer < world_->size(); ++peer) {
    if (peer == world_->rank()) continue;
    const Sequences theirs = decodePosts(all[peer], peer);
    Comparison(world_->rank(), peer, resources).run(mine, theirs);
  }
  resources.job.end(comm::Activity::MatchingPosts);
}

}  // namespace heddle::host
