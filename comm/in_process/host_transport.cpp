// The in-process transport on host memory. A meeting whose ranks have all posted is work that
// anybody who tests may do: a rank takes its own part first and then those of peers who are busy
// elsewhere. So an operation completes as soon as one rank waits for it, and ranks that wait for
// different teams cannot hold each other up.
//
// Buffers may be freed once test() has answered true or has thrown, the communicator is gone, or
// abort() of their rank's World has returned.
#include <cstring>
#include <map>

#include "comm/in_process/meeting_parts.h"
#include "comm/in_process/worlds.h"
#include "comm/operation.h"
#include "ir/base/error.h"

namespace heddle::comm {
namespace {

class HostMover : public Mover {
 public:
  void copy(void* to, const void* from, int64_t bytes) override {
    std::memcpy(to, from, static_cast<size_t>(bytes));
  }
  void reduce(void* dst, std::span<const void* const> srcs, int64_t count, DType dtype,
              ReduceOp op) override {
    reduceOnHost(dst, srcs, count, dtype, op);
  }
};

bool isComplete(const Meeting& meeting) {
  return meeting.missing == 0 && meeting.done == partsOf(meeting);
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
    std::vector<Seat> seats;
    for (const Operation& op : group) seats.push_back(team_->sit(member_, op));
    pending_.emplace(next_, std::move(seats));
    return next_++;
  }

  bool test(Ticket ticket) override {
    HEDDLE_USER_CHECK(ticket >= 0 && ticket < next_, "ticket {} was never given out", ticket);
    std::unique_lock lock(team_->job().mutex);
    const auto found = pending_.find(ticket);
    if (found == pending_.end()) return true;
    bool complete = true;
    for (const Seat& seat : found->second) {
      work(*seat.meeting, seat.index, lock);
      if (isComplete(*seat.meeting)) continue;
      complete = false;
      failIfHopeless(*seat.meeting, lock);
    }
    if (complete) pending_.erase(found);
    return complete;
  }

 private:
  // The part to do next, this rank's own first; -1 when none is left.
  static int claim(Meeting& meeting, int own) {
    const int parts = partsOf(meeting);
    meeting.claimed.resize(parts, false);
    for (int i = 0; i < parts; ++i) {
      const int part = (own + i) % parts;
      if (meeting.claimed[part]) continue;
      meeting.claimed[part] = true;
      return part;
    }
    return -1;
  }

  // Does what can be done, the data movement itself outside the lock.
  void work(Meeting& meeting, int own, std::unique_lock<std::mutex>& lock) {
    while (meeting.missing == 0 && meeting.cancelled.empty() && !team_->isHalted()) {
      const int part = claim(meeting, own);
      if (part < 0) return;
      JobState& job = team_->job();
      ++meeting.running;
      ++job.moving;
      lock.unlock();
      HostMover mover;
      movePart(meeting, part, mover);
      lock.lock();
      --meeting.running;
      --job.moving;
      ++meeting.done;
      if (!meeting.cancelled.empty() || !job.aborted.empty()) job.changed.notify_all();
    }
  }

  void failIfHopeless(const Meeting& meeting, std::unique_lock<std::mutex>& lock) {
    try {
      team_->check(meeting);
    } catch (const UserError& error) {
      withdraw(lock, error.what());
      throw;
    }
  }

  // Takes this rank's buffers out of every operation that is not complete: no peer begins a part,
  // and those under way, which are only copies, are waited for. Peers hear the first cause.
  void withdraw(std::unique_lock<std::mutex>& lock, const std::string& cause) {
    for (auto& [ticket, seats] : pending_) {
      for (const Seat& seat : seats) {
        Meeting& meeting = *seat.meeting;
        if (isComplete(meeting)) continue;
        if (meeting.cancelled.empty()) meeting.cancelled = cause;
        team_->job().changed.notify_all();
        team_->job().changed.wait(lock, [&] { return meeting.running == 0; });
      }
    }
  }

  std::shared_ptr<Team> team_;
  int member_;
  Ticket next_ = 0;
  std::map<Ticket, std::vector<Seat>> pending_;
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
