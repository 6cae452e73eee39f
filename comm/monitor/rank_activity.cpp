#include "comm/monitor/rank_activity.h"

#include <algorithm>

namespace heddle::comm {

void RankActivity::beginCompiling() {
  std::lock_guard lock(mutex_);
  ++compiling_;
  publish();
}

void RankActivity::endCompiling() {
  std::lock_guard lock(mutex_);
  --compiling_;
  publish();
}

int64_t RankActivity::beginRun(uint64_t program, uint64_t plan, int64_t chain) {
  std::lock_guard lock(mutex_);
  const int64_t number = status_.run.load(std::memory_order_relaxed) + 1;
  open_.push_back({number, chain});  // before the number is seen
  begun_ = true;
  status_.beginRun(program, plan, true);
  publish();
  return number;
}

bool RankActivity::endRun(int64_t number) {
  std::lock_guard lock(mutex_);
  const auto own = std::find_if(open_.begin(), open_.end(),
                                [&](const Open& run) { return run.number == number; });
  if (own == open_.end()) return false;
  const int64_t chain = own->chain;
  std::erase_if(open_, [&](const Open& run) {
    return run.number == number || (run.number < number && chain != 0 && run.chain == chain);
  });
  const int64_t finished =
      open_.empty() ? status_.run.load(std::memory_order_relaxed) : open_.front().number - 1;
  status_.finished.store(finished, std::memory_order_release);
  publish();
  return true;
}

void RankActivity::beginLocalRun(uint64_t program) {
  std::lock_guard lock(mutex_);
  ++local_;
  begun_ = true;
  status_.beginRun(program, 0, false);
  publish();
}

void RankActivity::endLocalRuns(int64_t runs) {
  std::lock_guard lock(mutex_);
  local_ -= runs;
  publish();
}

void RankActivity::beginWaiting() {
  std::lock_guard lock(mutex_);
  ++waiting_;
  publish();
}

void RankActivity::endWaiting() {
  std::lock_guard lock(mutex_);
  --waiting_;
  publish();
}

void RankActivity::endRuns(bool unwinds) {
  std::lock_guard lock(mutex_);
  ended_ = true;
  status_.unwinds.store(unwinds, std::memory_order_relaxed);
  publish();
}

void RankActivity::resume() {
  std::lock_guard lock(mutex_);
  if (!ended_) return;
  ended_ = false;
  publish();
}

void RankActivity::publish() { status_.phase.store(phase(), std::memory_order_release); }

RankPhase RankActivity::phase() const {
  if (compiling_ > 0) return RankPhase::Compiling;
  if (waiting_ > 0) return RankPhase::Communicating;
  if (!open_.empty() || local_ > 0) return RankPhase::Computing;
  if (ended_) return RankPhase::Ended;
  return begun_ ? RankPhase::Done : RankPhase::Idle;
}

}  // namespace heddle::comm
