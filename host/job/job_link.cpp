#include "host/job/job_link.h"

#include <boost/container_hash/hash.hpp>

namespace heddle::host {

// The code RankLost says that `error` is a consequence of a failure of another rank. If a rank
// leaves the job because of a failure, a call of this rank that waits for it may throw `error`
// before the job monitor of this rank interrupts the call. `error` then says which rank has left,
// but not why.
void throwIfOtherRankFailed(const comm::JobMonitor& monitor, const UserError& error) {
  const bool is_consequence = error.code() == ErrorCode::RankLost;
  if (!is_consequence && !monitor.failed()) return;
  const std::optional<comm::JobFailure> failure = monitor.findFailure();
  if (!failure) return;
  const bool is_own = failure->told && failure->rank == monitor.rank();
  if (is_own) return;
  const std::string text = error.what();
  const bool lacks_reason = is_consequence && text.find(failure->text) == std::string::npos;
  throw UserError(lacks_reason ? failure->text : text, failure->code);
}

void JobLink::open(comm::World& world, comm::JobMonitor& monitor, uint64_t program,
                   int64_t number) {
  std::lock_guard lock(mutex_);
  world_ = &world;
  monitor_ = &monitor;
  status_ = &monitor.mine();
  program_ = program;
  number_ = number;
  opened_.store(true, std::memory_order_release);
}

void JobLink::close() {
  std::lock_guard lock(mutex_);
  for (; waiting_ > 0 && monitor_ != nullptr; --waiting_) {
    monitor_->activity().end(comm::Activity::Waiting);
  }
  world_ = nullptr;
  monitor_ = nullptr;
}

void JobLink::begin(comm::Activity activity) {
  if (isLocal()) return;
  std::lock_guard lock(mutex_);
  if (monitor_ == nullptr) return;
  monitor_->activity().begin(activity);
  waiting_ += activity == comm::Activity::Waiting ? 1 : 0;
}

void JobLink::end(comm::Activity activity) {
  if (isLocal()) return;
  std::lock_guard lock(mutex_);
  if (monitor_ == nullptr) return;
  monitor_->activity().end(activity);
  waiting_ -= activity == comm::Activity::Waiting ? 1 : 0;
}

int64_t JobLink::beginRun(uint64_t sizes, bool communicates, int64_t chain) {
  if (isLocal()) return 0;
  std::lock_guard lock(mutex_);
  if (monitor_ == nullptr) return 0;
  // A chain is a sequence of runs that end in the order in which they began. The runs of an
  // Executable whose program does not communicate form one chain, with a negative id. Chains of
  // communicating runs have positive ids (0: no chain).
  if (!communicates) return monitor_->activity().beginLocalRun(program_, -1 - number_);
  size_t plan = program_;
  boost::hash_combine(plan, number_);
  boost::hash_combine(plan, sizes);
  return monitor_->activity().beginRun(program_, plan, chain);
}

// A rank compares its communicating runs with those of the next rank after each of the first 16
// such runs of the Executable, and later after every kKeptRuns-th one. A comparison after every run
// would be too slow, because each comparison reads memory that the next rank writes.
void JobLink::endRun(int64_t run) {
  if (isLocal()) return;
  constexpr int64_t kFirst = 16;
  constexpr auto kPeriod = static_cast<int64_t>(comm::kKeptRuns);
  std::lock_guard lock(mutex_);
  if (monitor_ == nullptr || monitor_->failed()) return;
  if (!monitor_->activity().endRun(run) || run < 0) return;
  if (++ended_runs_ <= kFirst || ended_runs_ % kPeriod == 0) monitor_->compareRuns();
}

void JobLink::compareCounts(int32_t instruction, int32_t occurrence,
                            const std::vector<int>& members, std::span<const int64_t> sends,
                            std::span<const int64_t> expects) {
  std::lock_guard lock(mutex_);
  if (monitor_ == nullptr) return;
  size_t stamp = program_;
  boost::hash_combine(stamp, status_->run.load(std::memory_order_relaxed));
  boost::hash_combine(stamp, instruction);
  boost::hash_combine(stamp, occurrence);
  monitor_->compareCounts(stamp | 1, members, sends, expects);
}

void JobLink::fail(const std::string& reason) noexcept {
  std::lock_guard lock(mutex_);
  failJob(monitor_, world_, reason.c_str());
}

bool JobLink::failed() const {
  std::lock_guard lock(mutex_);
  return monitor_ != nullptr && monitor_->failed();
}

ErrorCode JobLink::failureCode() const {
  std::lock_guard lock(mutex_);
  return monitor_ != nullptr ? monitor_->failure().code : ErrorCode::RankLost;
}

void failJob(comm::JobMonitor* monitor, comm::World* world, const char* reason) noexcept {
  if (monitor == nullptr) return;
  monitor->fail(reason);
  world->interrupt(reason);
}

void failJobAndRethrow(comm::JobMonitor* monitor, comm::World* world) {
  try {
    throw;
  } catch (const UserError& error) {
    if (monitor != nullptr) throwIfOtherRankFailed(*monitor, error);
    failJob(monitor, world, error.what());
    throw;
  } catch (const std::exception& error) {
    failJob(monitor, world, error.what());
    throw;
  }
}

void JobLink::throwIfOtherRankFailed(const UserError& error) const {
  std::lock_guard lock(mutex_);
  if (monitor_ != nullptr) host::throwIfOtherRankFailed(*monitor_, error);
}

std::string JobLink::failure() const {
  std::lock_guard lock(mutex_);
  return monitor_ != nullptr && monitor_->failed() ? monitor_->failure().text : std::string();
}

}  // namespace heddle::host
