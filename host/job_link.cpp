#include "host/job_link.h"

#include <boost/container_hash/hash.hpp>

namespace heddle::host {

using comm::RankPhase;

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
  world_ = nullptr;
  board_ = nullptr;
}

void JobLink::beginCompiling() {
  std::lock_guard lock(mutex_);
  if (board_ == nullptr) return;
  before_compiling_ = slot_->phase.load(std::memory_order_relaxed);
  slot_->phase.store(RankPhase::Compiling, std::memory_order_release);
}

void JobLink::endCompiling() {
  std::lock_guard lock(mutex_);
  if (board_ != nullptr) slot_->phase.store(before_compiling_, std::memory_order_release);
}

int64_t JobLink::beginRun(uint64_t sizes, bool communicates) {
  std::lock_guard lock(mutex_);
  if (board_ == nullptr) return 0;
  size_t plan = program_;
  boost::hash_combine(plan, number_);
  boost::hash_combine(plan, sizes);
  slot_->beginRun(program_, plan, communicates);
  if (communicates) ++open_runs_;
  return ++runs_;
}

void JobLink::endRun(int64_t number) {
  std::lock_guard lock(mutex_);
  // A rank that has failed stays where it was.
  if (board_ == nullptr || board_->failed()) return;
  // Those of one Executable communicate, and end, in the order in which they began.
  if (const int64_t unfinished = runs_ - number; open_runs_ > unfinished) {
    slot_->endRuns(open_runs_ - unfinished);
    open_runs_ = unfinished;
    compareRuns(number);
  }
  if (number != runs_) return;
  slot_->phase.store(RankPhase::Done, std::memory_order_release);
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
  slot_->phase.store(RankPhase::Communicating, std::memory_order_release);
}

void JobLink::endAgreeing() {
  std::lock_guard lock(mutex_);
  if (board_ == nullptr) return;
  slot_->issued.store(-1, std::memory_order_relaxed);
  slot_->phase.store(RankPhase::Computing, std::memory_order_release);
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

void JobLink::waitForDevice() {
  std::lock_guard lock(mutex_);
  if (board_ != nullptr) slot_->phase.store(RankPhase::Communicating, std::memory_order_release);
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
