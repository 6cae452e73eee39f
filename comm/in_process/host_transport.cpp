// The in-process transport on host memory. After all participants have posted an operation, test()
// on any of them moves data. It first moves the part of its own rank, and then all parts that no
// rank has started to move (comm/in_process/operation_parts.h). Once all participants have posted
// an operation, it therefore completes even if only one of them calls test(). For example, two
// ranks that wait for operations of different teams cannot block each other.
//
// Buffers may be freed after one of these events:
// - test() has returned true or has thrown;
// - the communicator has been destroyed;
// - abort() of the World has returned.
#include <cstring>
#include <map>

#include "comm/in_process/operation_parts.h"
#include "comm/in_process/worlds.h"
#include "comm/operation.h"
#include "ir/base/check.h"

namespace heddle::comm {
namespace {

class HostMover : public Mover {
 public:
  void copy(void* to, const void* from, int64_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
  void reduce(void* dst, std::span<const void* const> srcs, int64_t count, DType dtype,
              ReduceOp op) override {
    reduceOnHost(dst, srcs, count, dtype, op);
  }
};

bool isComplete(const MatchedOperation& matched) {
  return matched.missing == 0 && matched.done == partsOf(matched);
}

class HostCommunicator : public Communicator {
 public:
  HostCommunicator(std::shared_ptr<Team> team, int member)
      : team_(std::move(team)), member_(member) {}
  ~HostCommunicator() override {
    std::unique_lock lock(team_->job().mutex);
    withdraw(lock, fmt::format("team {}: rank {} left before an operation was done",
                               listOf(team_->members()), team_->members()[member_]));
    team_->leave(member_);
  }

  int rank() const override { return member_; }
  int size() const override { return team_->size(); }
  bool isStreamOrdered() const override { return false; }

  Ticket post(std::span<const Operation> group, void* /*stream*/) override {
    checkGroup(group, rank(), size());
    std::lock_guard lock(team_->job().mutex);
    std::vector<Participant> participants;
    for (const Operation& op : group) participants.push_back(team_->post(member_, op));
    pending_.emplace(next_, std::move(participants));
    return next_++;
  }

  bool test(Ticket ticket) override {
    HEDDLE_USER_CHECK(ticket >= 0 && ticket < next_, "post() never returned ticket {}", ticket);
    std::unique_lock lock(team_->job().mutex);
    const auto found = pending_.find(ticket);
    if (found == pending_.end()) return true;
    bool complete = true;
    for (const Participant& participant : found->second) {
      work(*participant.matched, participant.index, lock);
      if (isComplete(*participant.matched)) continue;
      complete = false;
      throwIfLost(*participant.matched, lock);
    }
    if (complete) pending_.erase(found);
    return complete;
  }

 private:
  // Marks a part as started and returns its number, or returns -1 if all parts are started. Prefers
  // part `own`.
  static int claim(MatchedOperation& matched, int own) {
    const int parts = partsOf(matched);
    matched.claimed.resize(parts, false);
    for (int i = 0; i < parts; ++i) {
      const int part = (own + i) % parts;
      if (matched.claimed[part]) continue;
      matched.claimed[part] = true;
      return part;
    }
    return -1;
  }

  // If all participants have posted, moves all parts that no rank has started. Stops early if the
  // operation is cancelled or the team halts. Releases the lock while it moves data.
  void work(MatchedOperation& matched, int own, std::unique_lock<std::mutex>& lock) {
    while (matched.missing == 0 && matched.cancelled.empty() && !team_->isHalted()) {
      const int part = claim(matched, own);
      if (part < 0) return;
      JobState& job = team_->job();
      ++matched.running;
      ++job.running_copies;
      lock.unlock();
      HostMover mover;
      movePart(matched, part, mover);
      lock.lock();
      --matched.running;
      --job.running_copies;
      ++matched.done;
      if (!matched.cancelled.empty() || !job.aborted.empty()) job.changed.notify_all();
    }
  }

  void throwIfLost(const MatchedOperation& matched, std::unique_lock<std::mutex>& lock) {
    try {
      team_->check(matched);
    } catch (const UserError& error) {
      withdraw(lock, error.what());
      throw;
    }
  }

  // Withdraws the buffers of this rank from every operation that has not completed. No rank starts
  // a part of these operations any more, and the other ranks report the cause of the first
  // withdrawal. Waits for running parts, because they still access the buffers of this rank.
  void withdraw(std::unique_lock<std::mutex>& lock, const std::string& cause) {
    for (auto& [ticket, participants] : pending_) {
      for (const Participant& participant : participants) {
        MatchedOperation& matched = *participant.matched;
        if (isComplete(matched)) continue;
        if (matched.cancelled.empty()) matched.cancelled = cause;
        team_->job().changed.notify_all();
        team_->job().changed.wait(lock, [&] { return matched.running == 0; });
      }
    }
  }

  std::shared_ptr<Team> team_;
  int member_;
  Ticket next_ = 0;
  std::map<Ticket, std::vector<Participant>> pending_;
};

}  // namespace

std::vector<std::unique_ptr<World>> makeHostWorldsOfThreads(int size,
                                                            const std::string& transport) {
  return makeWorldsOfThreads(size, transport, [](std::shared_ptr<Team> team, int member) {
    return std::make_unique<HostCommunicator>(std::move(team), member);
  });
}

std::vector<std::unique_ptr<World>> makeInProcessWorlds(int size) {
  return makeHostWorldsOfThreads(size, "in-process");
}

}  // namespace heddle::comm
