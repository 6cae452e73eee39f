#include "host/post_agreement.h"

#include <algorithm>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "comm/operation.h"
#include "ir/error.h"

namespace heddle::host {
namespace {

using comm::CollectiveKind;
using comm::Operation;

// An operation that a rank will post; of a transfer both ends as ranks of the job.
struct Posted {
  InstructionIndex instruction = -1;
  std::vector<int> members;
  Operation operation;  // without buffers and lists
  int from = -1;
  int to = -1;

  bool isTransfer() const { return comm::isPointToPoint(operation.kind); }
};

bool sameOperation(const Posted& a, const Posted& b) {
  const Operation& x = a.operation;
  const Operation& y = b.operation;
  if (a.members != b.members || x.dtype != y.dtype || x.count != y.count) return false;
  if (a.isTransfer() && b.isTransfer()) return true;
  return a.instruction == b.instruction && x.kind == y.kind &&
         (!comm::reduces(x.kind) || x.reduce == y.reduce) &&
         (!comm::isRooted(x.kind) || x.root == y.root);
}

std::string describePost(const Posted& posted) {
  const Operation& op = posted.operation;
  if (op.kind != CollectiveKind::AllToAllV) return comm::describe(op);
  return fmt::format("alltoallv of {}", name(op.dtype));  // its lists come later
}

// The trips of a loop once.
void addNew(std::vector<Posted>& list, const Posted& posted) {
  const auto known = [&](const Posted& one) {
    return one.instruction == posted.instruction && one.from == posted.from &&
           one.to == posted.to && sameOperation(one, posted);
  };
  if (std::none_of(list.begin(), list.end(), known)) list.push_back(posted);
}

std::vector<Posted> postedBy(const Plan& plan, int rank) {
  std::vector<Posted> list;
  for (size_t step = 0; step < plan.steps.size(); ++step) {
    const auto* post = std::get_if<CollectiveStep>(&plan.steps[step]);
    if (post == nullptr || post->communicator->size() == 1) continue;
    Posted posted{plan.instruction_of[step], plan.teams[static_cast<size_t>(post->team)], {}};
    for (int32_t i = 0; i < post->operations; ++i) {
      posted.operation = plan.operations[static_cast<size_t>(post->first + i)];
      if (posted.isTransfer()) {
        const int peer = posted.members.at(static_cast<size_t>(posted.operation.peer));
        const bool sends = posted.operation.kind == CollectiveKind::Send;
        posted.from = sends ? rank : peer;
        posted.to = sends ? peer : rank;
      }
      addNew(list, posted);
    }
  }
  return list;
}

std::string encodePosts(const std::vector<Posted>& list) {
  std::string text;
  for (const Posted& one : list) {
    const Operation& op = one.operation;
    text += fmt::format("{} {} {} {} {} {} {} {} {} {} {}\n", one.instruction, one.from, one.to,
                        static_cast<int>(op.kind), op.count, static_cast<int>(op.dtype),
                        static_cast<int>(op.reduce), op.peer, op.root, one.members.size(),
                        fmt::join(one.members, " "));
  }
  return text;
}

// `peer` has given `text`. What is none, as of a rank that is elsewhere in the program, is an
// error.
std::vector<Posted> decodePosts(const std::string& text, int peer) {
  std::vector<Posted> list;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream in(line);
    Posted one;
    int kind = 0, dtype = 0, reduce = 0;
    size_t members = 0;
    in >> one.instruction >> one.from >> one.to >> kind >> one.operation.count >> dtype >> reduce >>
        one.operation.peer >> one.operation.root >> members;
    one.operation.kind = static_cast<CollectiveKind>(kind);
    one.operation.dtype = static_cast<DType>(dtype);
    one.operation.reduce = static_cast<ReduceOp>(reduce);
    for (int member = 0; members > 0 && in >> member; --members) one.members.push_back(member);
    HEDDLE_USER_CHECK(in && members == 0,
                      "rank {} did not come to this run with sizes that are new to it", peer);
    list.push_back(std::move(one));
  }
  return list;
}

// Of one rank's posts those that another takes part in: collectives, or transfers between the two.
std::vector<Posted> shared(const std::vector<Posted>& posts, int other,
                           const std::optional<std::pair<int, int>>& transfer) {
  std::vector<Posted> list;
  for (const Posted& one : posts) {
    if (one.isTransfer() != transfer.has_value()) continue;
    const bool both =
        transfer ? std::pair(one.from, one.to) == *transfer
                 : std::find(one.members.begin(), one.members.end(), other) != one.members.end();
    if (both) list.push_back(one);
  }
  return list;
}

class Comparison {
 public:
  Comparison(int rank, int peer, const RunResources& resources)
      : rank_(rank), peer_(peer), resources_(resources) {}

  void run(const std::vector<Posted>& mine, const std::vector<Posted>& theirs) const {
    const std::optional<std::pair<int, int>> ways[] = {std::nullopt, std::pair(rank_, peer_),
                                                       std::pair(peer_, rank_)};
    for (const auto& way : ways) compare(shared(mine, peer_, way), shared(theirs, rank_, way));
  }

 private:
  void compare(const std::vector<Posted>& mine, const std::vector<Posted>& theirs) const {
    const size_t count = std::max(mine.size(), theirs.size());
    for (size_t i = 0; i < count; ++i) {
      const Posted* a = i < mine.size() ? &mine[i] : nullptr;
      const Posted* b = i < theirs.size() ? &theirs[i] : nullptr;
      if (a != nullptr && b != nullptr && sameOperation(*a, *b)) continue;
      const Posted& named = a != nullptr ? *a : *b;
      userError("{}: rank {} posts {} where rank {} posts {}", resources_.text(named.instruction),
                rank_, textOf(a), peer_, textOf(b));
    }
  }
  static std::string textOf(const Posted* posted) {
    return posted == nullptr ? "nothing" : describePost(*posted);
  }

  int rank_;
  int peer_;
  const RunResources& resources_;
};

}  // namespace

// Other transports compare each operation when it is posted.
PostAgreement::PostAgreement(comm::World* world, bool communicates)
    : world_(world),
      talks_(world != nullptr && world->size() > 1 && communicates &&
             world->transport() == "nccl") {}

void PostAgreement::agree(const Plan& plan, RunResources& resources) {
  if (!talks_) return;
  std::lock_guard lock(mutex_);
  if (!agreed_.insert(plan.sizes_hash).second) return;
  resources.job.beginAgreeing();
  const std::vector<Posted> mine = postedBy(plan, world_->rank());
  const std::vector<std::string> all = world_->exchange(encodePosts(mine));
  for (int peer = 0; peer < world_->size(); ++peer) {
    if (peer == world_->rank()) continue;
    const auto theirs = decodePosts(all[static_cast<size_t>(peer)], peer);
    Comparison(world_->rank(), peer, resources).run(mine, theirs);
  }
  resources.job.endAgreeing();
}

}  // namespace heddle::host
