#include "comm/in_process/job.h"

#include <algorithm>

#include "comm/operation.h"
#include "ir/base/check.h"

namespace heddle::comm {

InProcessJob::InProcessJob(int size) : state_(std::make_shared<JobState>(size)) {}

void InProcessJob::wait(std::unique_lock<std::mutex>& lock, const std::string& what,
                        const std::function<bool()>& ready,
                        const std::function<bool(int)>& needed) {
  while (!ready()) {
    HEDDLE_USER_CHECK_CODE(RankLost, state_->aborted.empty(), "{}: {}", what, state_->aborted);
    for (int rank = 0; rank < state_->size; ++rank) {
      HEDDLE_USER_CHECK_CODE(RankLost, !state_->left[rank] || !needed(rank),
                             "{}: rank {} left while others wait for it", what, rank);
    }
    state_->changed.wait(lock);
  }
}

std::vector<std::string> InProcessJob::exchange(int rank, const std::string& mine) {
  std::unique_lock lock(state_->mutex);
  HEDDLE_USER_CHECK_CODE(RankLost, state_->aborted.empty(), "exchange: {}", state_->aborted);
  const size_t size = state_->size;
  if (!exchange_) {
    exchange_ = std::make_shared<Exchange>(
        Exchange{std::vector<std::string>(size), std::vector<bool>(size, false), state_->size});
  }
  const std::shared_ptr<Exchange> round = exchange_;
  round->bytes[rank] = mine;
  round->present[rank] = true;
  if (--round->missing == 0) {
    exchange_.reset();
    state_->changed.notify_all();
  }
  wait(
      lock, "exchange", [&] { return round->missing == 0; },
      [&](int other) { return !round->present[other]; });
  return round->bytes;
}

std::shared_ptr<Team> InProcessJob::join(int rank, const std::vector<int>& members) {
  const int position = positionInTeam(members, rank, state_->size);
  std::unique_lock lock(state_->mutex);
  const std::string what = "communicator of " + listOf(members);
  HEDDLE_USER_CHECK_CODE(RankLost, state_->aborted.empty(), "{}: {}", what, state_->aborted);
  std::shared_ptr<Team>& incomplete = incomplete_teams_[members];
  if (!incomplete) incomplete = std::make_shared<Team>(state_, members);
  const std::shared_ptr<Team> team = incomplete;
  team->setJoined(position, true);
  if (team->isFull()) {
    incomplete_teams_.erase(members);
    state_->changed.notify_all();
  }
  const auto absent = [&](int other) {
    const auto found = std::find(members.begin(), members.end(), other);
    return found != members.end() && !team->joined(static_cast<int>(found - members.begin()));
  };
  try {
    wait(
        lock, what, [&] { return team->isFull(); }, absent);
  } catch (const UserError&) {
    team->setJoined(position, false);
    throw;
  }
  return team;
}

void InProcessJob::abort(int rank, const std::string& reason) {
  std::unique_lock lock(state_->mutex);
  if (state_->aborted.empty()) {
    state_->aborted = fmt::format("rank {} aborted: {}", rank, reason);
    state_->changed.notify_all();
  }
  state_->changed.wait(lock, [&] { return state_->running_copies == 0; });
}

void InProcessJob::leave(int rank) {
  std::lock_guard lock(state_->mutex);
  state_->left[rank] = true;
  state_->changed.notify_all();
}

namespace {

class InProcessWorld : public World {
 public:
  InProcessWorld(std::shared_ptr<InProcessJob> job, int rank, std::string transport,
                 CommunicatorMaker maker)
      : job_(std::move(job)),
        rank_(rank),
        transport_(std::move(transport)),
        maker_(std::move(maker)) {}
  ~InProcessWorld() override {
    closeMonitor();
    job_->leave(rank_);
  }

  int rank() const override { return rank_; }
  int size() const override { return job_->state().size; }
  std::string transport() const override { return transport_; }
  std::vector<std::string> exchange(const std::string& mine) override {
    const Wait wait(*this, true);
    return job_->exchange(rank_, mine);
  }
  std::unique_ptr<Communicator> communicator(const std::vector<int>& members) override {
    const Wait wait(*this, false);
    const int position = positionInTeam(members, rank_, size());
    return maker_(job_->join(rank_, members), position);
  }
  void abort(const std::string& reason) noexcept override { job_->abort(rank_, reason); }
  void fail(const std::string& why) noexcept override {
    World::fail(why);
    if (!hasMonitor()) job_->abort(rank_, why);
  }
  std::string fault() const override {
    std::lock_guard lock(job_->state().mutex);
    return job_->state().aborted;
  }

 private:
  std::shared_ptr<InProcessJob> job_;
  int rank_;
  std::string transport_;
  CommunicatorMaker maker_;
};

}  // namespace

std::vector<std::unique_ptr<World>> makeWorldsOfThreads(int size, const std::string& transport,
                                                        CommunicatorMaker maker) {
  HEDDLE_USER_CHECK(size >= 1, "a job needs at least one rank, got {}", size);
  auto job = std::make_shared<InProcessJob>(size);
  std::vector<std::unique_ptr<World>> worlds;
  for (int rank = 0; rank < size; ++rank) {
    worlds.push_back(std::make_unique<InProcessWorld>(job, rank, transport, maker));
  }
  return worlds;
}

}  // namespace heddle::comm
