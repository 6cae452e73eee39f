#include "comm/monitor/rank_activity.h"

#include <algorithm>

namespace heddle::comm {

void RankActivity::begin(Activity activity) {
  std::lock_guard lock(mutex_);
  ++(activity == Activity::Compiling ? compiling_ : waiting_);
  if (activity == Activity::MatchingPosts) status_.issued.store(kMatchingPosts);
  publish();
}

void RankActivity::end(Activity activity) {
  std::lock_guard lock(mutex_);
  --(activity == Activity::Compiling ? compiling_ : waiting_);
  if (activity == Activity::MatchingPosts) status_.issued.store(-1);
  publish();
}

int64_t RankActivity::beginRun(uint64_t program, uint64_t plan, int64_t chain) {
  std::lock_guard lock(mutex_);
  return open(status_.run.load(std::memory_order_relaxed) + 1, program, plan, chain);
}

int64_t RankActivity::beginLocalRun(uint64_t program, int64_t chain) {
  std::lock_guard lock(mutex_);
  return open(-++local_runs_, program, 0, chain);
}

int64_t RankActivity::open(int64_t number, uint64_t program, uint64_t plan, int64_t chain) {
  open_.push_back({number, chain});
  begun_ = true;
  status_.beginRun(program, plan, number > 0);
  publish();
  return number;
}

bool RankActivity::endRun(int64_t number) {
  std::lock_guard lock(mutex_);
  const auto ended = std::find_if(open_.begin(), open_.end(),
                                  [&](const Open& run) { return run.number == number; });
  if (ended == open_.end()) return false;
  const int64_t chain = ended->chain;
  const auto kept = std::remove_if(
      open_.begin(), ended, [&](const Open& run) { return chain != 0 && run.chain == chain; });
  open_.erase(kept, ended + 1);
  const auto earliest =
      std::find_if(open_.begin(), open_.end(), [](const Open& run) { return run.number > 0; });
  status_.finished.store(earliest == open_.end() ? status_.run.load() : earliest->number - 1);
  publish();
  return true;
}

void RankActivity::endRuns(bool unwinds) {
  std::lock_guard lock(mutex_);
  phase_between_runs_ = unwinds ? RankPhase::Unwinding : RankPhase::Ended;
  publish();
}

void RankActivity::resume() {
  std::lock_guard lock(mutex_);
  phase_between_runs_ = RankPhase::Idle;
  publish();
}

void RankActivity::publish() {
  RankPhase phase = phase_between_runs_;
  if (compiling_ > 0) {
    phase = RankPhase::Compiling;
  } else if (waiting_ > 0) {
    phase = RankPhase::Communicating;
  } else if (!open_.empty()) {
    phase = RankPhase::Computing;
  } else if (phase == RankPhase::Idle && begun_) {
    phase = RankPhase::Done;
  }
  status_.phase.store(phase, std::memory_order_release);
}

}  // namespace heddle::comm
