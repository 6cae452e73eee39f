#include "host/job/job_link.h"

#include <boost/container_hash/hash.hpp>

namespace heddle::host {

void JobLink::open(comm::World& world, comm::ControlBoard& board, uint64_t program,
                   int64_t number) {
  std::lock_guard lock(mutex_);
  world_ = &world;
  board_ = &board;
  slot_ = &board.mine();
  program_ = program;
  number_ = number;
}

void JobLink::close() {
  std::lock_guard lock(mutex_);
  for (; waiting_ > 0 && board_ != nullptr; --waiting_) board_->activity().endWaiting();
  world_ = nullptr;
  board_ = nullptr;
}

void JobLink::beginCompiling() {
  std::lock_guard lock(mutex_);
  if (board_ != nullptr) board_->activity().beginCompiling();
}

void JobLink::endCompiling() {
  std::lock_guard lock(mutex_);
  if (board_ != nullptr) board_->activity().endCompiling();
}

RunNumber JobLink::beginRun(uint64_t sizes, bool communicates, int64_t chain) {
  std::lock_guard lock(mutex_);
  RunNumber run;
  if (board_ == nullptr) return run;
  run.own = ++runs_;
  if (communicates) {
    size_t plan = program_;
    boost::hash_combine(plan, number_);
    boost::hash_combine(plan, sizes);
    run.of_job = board_->activity().beginRun(program_, plan, chain);
  } else {
    board_->activity().beginLocalRun(program_);
  }
  return run;
}

void JobLink::endRun(const RunNumber& run) {
  std::lock_guard lock(mutex_);
  // A rank that has failed stays where it was.
  if (board_ == nullptr || board_->failed()) return;
  if (run.of_job != 0) {
    if (board_->activity().endRun(run.of_job)) compareRuns(run.own);
  } else if (run.own > over_) {
    board_->activity().endLocalRuns(run.own - over_);
    over_ = run.own;
  }
}

// A peer's memory is not for every run of a long row.
void JobLink::compareRuns(int64_t number) const {
  constexpr int64_t kFirst = 16;
  constexpr auto kPeriod = static_cast<int64_t>(comm::BoardSlot::kKeptRuns);
  if (number <= kFirst || number % kPeriod == 0) board_->compareRuns();
}

void JobLink::beginAgreeing() {
  std::lock_guard lock(mutex_);
  if (board_ == nullptr) return;
  slot_->issued.store(comm::kAgreeing, std::memory_order_relaxed);
  board_->activity().beginWaiting();
}

void JobLink::endAgreeing() {
  std::lock_guard lock(mutex_);
  if (board_ == nullptr) return;
  slot_->issued.store(-1, std::memory_order_relaxed);
  board_->activity().endWaiting();
}

void JobLink::compareCounts(int32_t instruction, int32_t occurrence,
                            const std::vector<int>& members, std::span<const int64_t> sends,
                            std::span<const int64_t> expects) {
  std::lock_guard lock(mutex_);
  if (board_ == nullptr) return;
  size_t stamp = program_;
  boost::hash_combine(stamp, slot_->run.load(std::memory_order_relaxed));
  boost::hash_combine(stamp, instruction);
  boost::hash_combine(stamp, occurrence);
  board_->compareCounts(stamp | 1, members, sends, expects);
}

void JobLink::beginWaiting() {
  std::lock_guard lock(mutex_);
  if (board_ == nullptr) return;
  board_->activity().beginWaiting();
  ++waiting_;
}

void JobLink::endWaiting() {
  std::lock_guard lock(mutex_);
  if (board_ == nullptr) return;
  board_->activity().endWaiting();
  --waiting_;
}

void JobLink::fail(const std::string& reason) noexcept {
  std::lock_guard lock(mutex_);
  if (board_ == nullptr) return;
  board_->fail(reason);
  world_->interrupt(reason);
}

bool JobLink::failed() const {
  std::lock_guard lock(mutex_);
  return board_ != nullptr && board_->failed();
}

std::string JobLink::failure() const {
  std::lock_guard lock(mutex_);
  return board_ != nullptr && board_->failed() ? board_->failure().text : std::string();
}

}  // namespace heddle::host
