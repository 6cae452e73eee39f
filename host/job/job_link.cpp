#include "host/job/job_link.h"

#include <boost/container_hash/hash.hpp>

namespace heddle::host {

void JobLink::open(comm::World& world, comm::JobMonitor& monitor, uint64_t program,
                   int64_t number) {
  std::lock_guard lock(mutex_);
  world_ = &world;
  monitor_ = &monitor;
  status_ = &monitor.mine();
  program_ = program;
  number_ = number;
}

void JobLink::close() {
  std::lock_guard lock(mutex_);
  for (; waiting_ > 0 && monitor_ != nullptr; --waiting_) monitor_->activity().endWaiting();
  world_ = nullptr;
  monitor_ = nullptr;
}

void JobLink::beginCompiling() {
  std::lock_guard lock(mutex_);
  if (monitor_ != nullptr) monitor_->activity().beginCompiling();
}

void JobLink::endCompiling() {
  std::lock_guard lock(mutex_);
  if (monitor_ != nullptr) monitor_->activity().endCompiling();
}

RunNumber JobLink::beginRun(uint64_t sizes, bool communicates, int64_t chain) {
  std::lock_guard lock(mutex_);
  RunNumber run;
  if (monitor_ == nullptr) return run;
  run.own = ++runs_;
  if (communicates) {
    size_t plan = program_;
    boost::hash_combine(plan, number_);
    boost::hash_combine(plan, sizes);
    run.of_job = monitor_->activity().beginRun(program_, plan, chain);
  } else {
    monitor_->activity().beginLocalRun(program_);
  }
  return run;
}

void JobLink::endRun(const RunNumber& run) {
  std::lock_guard lock(mutex_);
  // A rank that has failed stays where it was.
  if (monitor_ == nullptr || monitor_->failed()) return;
  if (run.of_job != 0) {
    if (monitor_->activity().endRun(run.of_job)) compareRuns(run.own);
  } else if (run.own > over_) {
    monitor_->activity().endLocalRuns(run.own - over_);
    over_ = run.own;
  }
}

// A peer's memory is not for every run of a long row.
void JobLink::compareRuns(int64_t number) const {
  constexpr int64_t kFirst = 16;
  constexpr auto kPeriod = static_cast<int64_t>(comm::RankStatus::kKeptRuns);
  if (number <= kFirst || number % kPeriod == 0) monitor_->compareRuns();
}

void JobLink::beginAgreeing() {
  std::lock_guard lock(mutex_);
  if (monitor_ == nullptr) return;
  status_->issued.store(comm::kAgreeing, std::memory_order_relaxed);
  monitor_->activity().beginWaiting();
}

void JobLink::endAgreeing() {
  std::lock_guard lock(mutex_);
  if (monitor_ == nullptr) return;
  status_->issued.store(-1, std::memory_order_relaxed);
  monitor_->activity().endWaiting();
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

void JobLink::beginWaiting() {
  std::lock_guard lock(mutex_);
  if (monitor_ == nullptr) return;
  monitor_->activity().beginWaiting();
  ++waiting_;
}

void JobLink::endWaiting() {
  std::lock_guard lock(mutex_);
  if (monitor_ == nullptr) return;
  monitor_->activity().endWaiting();
  --waiting_;
}

void JobLink::fail(const std::string& reason) noexcept {
  std::lock_guard lock(mutex_);
  if (monitor_ == nullptr) return;
  monitor_->fail(reason);
  world_->interrupt(reason);
}

bool JobLink::failed() const {
  std::lock_guard lock(mutex_);
  return monitor_ != nullptr && monitor_->failed();
}

std::string JobLink::failure() const {
  std::lock_guard lock(mutex_);
  return monitor_ != nullptr && monitor_->failed() ? monitor_->failure().text : std::string();
}

}  // namespace heddle::host
