#include "host/run/match_collectives_across_ranks.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "comm/operation.h"
#include "host/verify/collectives_fit.h"
#include "ir/base/error.h"

namespace heddle::host {
namespace {

using comm::CollectiveKind;
using comm::Operation;
using nlohmann::json;

// Posts of one rank to one channel that are told in full; of the others their number and a hash.
constexpr size_t kTold = 1024;

struct Posted {
  InstructionIndex instruction = -1;
  Operation operation;  // without buffers, lists and peer
};

// Where ranks match posts by their order: the communicator of a team, or the transfers in it from
// one rank to another. Ranks of the job; no transfers: from is -1.
struct Channel {
  std::vector<int> members;
  comm::Carrier carrier;
  int from = -1;
  int to = -1;

  bool operator<(const Channel& other) const {
    return std::tie(members, carrier, from, to) <
           std::tie(other.members, other.carrier, other.from, other.to);
  }
  bool between(int a, int b) const {
    if (from >= 0) return (from == a && to == b) || (from == b && to == a);
    const auto has = [&](int rank) {
      return std::find(members.begin(), members.end(), rank) != members.end();
    };
    return has(a) && has(b);
  }
};

struct Line {
  std::vector<Posted> told;
  int64_t total = 0;
  uint64_t rest = 0;  // hash of those that are not told
  bool open = false;  // what follows is decided while the program runs
};
using Lines = std::map<Channel, Line>;

void addPost(Line& line, const Posted& posted, bool decided) {
  line.open = line.open || !decided;
  if (line.open) return;
  ++line.total;
  if (line.told.size() < kTold) {
    line.told.push_back(posted);
    return;
  }
  Operation alike = posted.operation;  // the two ends of a transfer count as one
  if (comm::isPointToPoint(alike.kind)) alike.kind = CollectiveKind::Send;
  alike.peer = 0;
  line.rest = line.rest * 1099511628211u + std::hash<std::string>{}(comm::describe(alike)) +
              static_cast<uint64_t>(alike.dtype);
}

Lines postsOf(const Plan& plan, int rank) {
  Lines lines;
  DecidedSteps decided;
  for (size_t step = 0; step < plan.steps.size(); ++step) {
    if (const auto* branch = std::get_if<BranchStep>(&plan.steps[step])) {
      decided.jump(static_cast<size_t>(branch->target));
    }
    if (const auto* skip = std::get_if<GotoStep>(&plan.steps[step])) {
      decided.jump(static_cast<size_t>(skip->target));
    }
    const auto* post = std::get_if<CollectiveStep>(&plan.steps[step]);
    if (post == nullptr || post->communicator->size() == 1) continue;
    for (int32_t i = 0; i < post->operations; ++i) {
      Posted posted{plan.instruction_of[step],
                    plan.operations[static_cast<size_t>(post->first + i)]};
      Channel channel{plan.teams[static_cast<size_t>(post->team)], post->carrier};
      if (comm::isPointToPoint(posted.operation.kind)) {
        const int peer = channel.members.at(static_cast<size_t>(posted.operation.peer));
        const bool sends = posted.operation.kind == CollectiveKind::Send;
        channel.carrier = {};
        channel.from = sends ? rank : peer;
        channel.to = sends ? peer : rank;
      }
      addPost(lines[channel], posted, decided.has(step));
    }
  }
  return lines;
}

std::string encodePosts(const Lines& lines) {
  json all = json::array();
  for (const auto& [channel, line] : lines) {
    json told = json::array();
    for (const Posted& one : line.told) {
      const Operation& op = one.operation;
      told.push_back({one.instruction, static_cast<int>(op.kind), static_cast<int>(op.dtype),
                      op.count, static_cast<int>(op.reduce), op.root, op.peer});
    }
    all.push_back({channel.members, channel.carrier.ctas, channel.carrier.copy_channel,
                   channel.from, channel.to, line.total, line.rest, line.open, std::move(told)});
  }
  return all.dump();
}

// What `peer` has given. What is no list of posts, as of a rank that is elsewhere in the program,
// is an error.
Lines decodePosts(const std::string& text, int peer) {
  Lines lines;
  const json all = json::parse(text, nullptr, false);
  HEDDLE_USER_CHECK(all.is_array(),
                    "rank {} did not come to this run with sizes that are new to it", peer);
  for (const json& one : all) {
    Line& line = lines[Channel{one.at(0), {one.at(1), one.at(2)}, one.at(3), one.at(4)}];
    line.total = one.at(5);
    line.rest = one.at(6);
    line.open = one.at(7);
    for (const json& told : one.at(8)) {
      Posted posted;
      posted.instruction = told.at(0);
      posted.operation.kind = static_cast<CollectiveKind>(told.at(1).get<int>());
      posted.operation.dtype = static_cast<DType>(told.at(2).get<int>());
      posted.operation.count = told.at(3);
      posted.operation.reduce = static_cast<ReduceOp>(told.at(4).get<int>());
      posted.operation.root = told.at(5);
      posted.operation.peer = told.at(6);
      line.told.push_back(std::move(posted));
    }
  }
  return lines;
}

class Comparison {
 public:
  Comparison(int rank, int peer, const RunResources& resources)
      : rank_(rank), peer_(peer), resources_(resources) {}

  void run(const Lines& mine, const Lines& theirs) const {
    static const Line kNothing;
    const auto of = [&](const Lines& lines, const Channel& channel) -> const Line& {
      const auto found = lines.find(channel);
      return found == lines.end() ? kNothing : found->second;
    };
    for (const Lines* lines : {&mine, &theirs}) {
      for (const auto& [channel, line] : *lines) {
        if (channel.between(rank_, peer_)) compare(of(mine, channel), of(theirs, channel));
      }
    }
  }

 private:
  void compare(const Line& mine, const Line& theirs) const {
    const size_t both = std::min(mine.told.size(), theirs.told.size());
    for (size_t i = 0; i < both; ++i) {
      if (!collectivesFit(mine.told[i].operation, theirs.told[i].operation)) {
        refuse(&mine.told[i], &theirs.told[i]);
      }
    }
    if (mine.total > theirs.total && !theirs.open) refuse(nextOf(mine, theirs), nullptr);
    if (theirs.total > mine.total && !mine.open) refuse(nullptr, nextOf(theirs, mine));
    const bool whole = mine.total == theirs.total && !mine.open && !theirs.open;
    if (whole && mine.rest != theirs.rest) {
      userError("{}: ranks {} and {} differ in what they post after the first {}",
                resources_.text(mine.told.back().instruction), rank_, peer_, kTold);
    }
  }
  // The first that the shorter line lacks, or the last that is told.
  static const Posted* nextOf(const Line& more, const Line& less) {
    return &more.told[std::min(static_cast<size_t>(less.total), more.told.size() - 1)];
  }
  [[noreturn]] void refuse(const Posted* mine, const Posted* theirs) const {
    const Posted& named = mine != nullptr ? *mine : *theirs;
    userError("{}: rank {} posts {} where rank {} posts {}", resources_.text(named.instruction),
              rank_, textOf(mine), peer_, textOf(theirs));
  }
  static std::string textOf(const Posted* posted) {
    return posted == nullptr ? "nothing" : postText(posted->operation);
  }

  int rank_;
  int peer_;
  const RunResources& resources_;
};

}  // namespace

// Other transports compare each operation when it is posted.
CrossRankMatcher::CrossRankMatcher(comm::World* world, bool communicates, size_t most)
    : world_(world),
      most_(most),
      talks_(world != nullptr && world->size() > 1 && communicates &&
             world->transport() == "nccl") {}

void CrossRankMatcher::agree(const Plan& plan, RunResources& resources) {
  if (!talks_ || plan.agreed == round_) return;
  if (isNew(plan.sizes_hash)) compare(plan, resources);
  plan.agreed = round_;
}

// Whatever plans a rank has kept or made anew, the answer is that of all the others.
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
  const Lines mine = postsOf(plan, world_->rank());
  const std::vector<std::string> all = world_->exchange(encodePosts(mine));
  for (int peer = 0; peer < world_->size(); ++peer) {
    if (peer == world_->rank()) continue;
    const Lines theirs = decodePosts(all[static_cast<size_t>(peer)], peer);
    Comparison(world_->rank(), peer, resources).run(mine, theirs);
  }
  resources.job.end(comm::Activity::MatchingPosts);
}

}  // namespace heddle::host
