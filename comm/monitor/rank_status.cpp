#include "comm/monitor/rank_status.h"

#include <algorithm>
#include <cstring>

namespace heddle::comm {
namespace {

static_assert(std::atomic<uint64_t>::is_always_lock_free &&
                  std::atomic<RankState>::is_always_lock_free,
              "processes share these atomics");

constexpr uint64_t kNumberBits = 32, kNumberMask = (uint64_t{1} << kNumberBits) - 1;

// Calls copy(status.x, facts.x) for each field x of RankFacts except `state` and `rank`.
template <class Status, class Facts, class Copy>
void forEachFact(Status& status, Facts& facts, const Copy& copy) {
  copy(status.run, facts.run);
  copy(status.finished, facts.finished);
  copy(status.phase, facts.phase);
  copy(status.task, facts.task);
  copy(status.wait, facts.wait);
  copy(status.calls, facts.calls);
  copy(status.program, facts.program);
  copy(status.issued, facts.issued);
  copy(status.computing, facts.computing);
  copy(status.communicating, facts.communicating);
  copy(status.progress, facts.progress);
  copy(status.heartbeat, facts.heartbeat);
  for (size_t i = 0; i < kKeptRuns; ++i) copy(status.run_hashes[i], facts.run_hashes[i]);
}

}  // namespace

bool StateWithReason::leave(RankState to, std::string_view reason) noexcept {
  RankState before = RankState::Alive;
  if (!state_.compare_exchange_strong(before, RankState::Writing)) return false;
  const size_t length = std::min(kReasonBytes - 1, reason.size());
  std::memcpy(reason_, reason.data(), length);
  reason_[length] = '\0';
  state_.store(to);
  return true;
}

std::string StateWithReason::reason() const {
  const RankState state = get();
  if (state == RankState::Alive || state == RankState::Writing) return {};
  return {reason_, strnlen(reason_, kReasonBytes)};
}

uint64_t runHash(uint64_t hash_of_previous_run, uint64_t plan, int64_t run) {
  // Mixes the bits of x with the finalizer of splitmix64.
  uint64_t x = (hash_of_previous_run >> kNumberBits) * 0x9e3779b97f4a7c15 + plan;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  x ^= x >> 31;
  const uint64_t number = static_cast<uint64_t>(run) & kNumberMask;
  return (x | uint64_t{1} << kNumberBits) >> kNumberBits << kNumberBits | number;
}

void RankStatus::beginRun(uint64_t program_hash, uint64_t plan_hash, bool counts) {
  program.store(program_hash, std::memory_order_relaxed);
  if (counts) {
    const int64_t number = run.load(std::memory_order_relaxed) + 1;
    const auto kept = [&](int64_t n) -> std::atomic<uint64_t>& {
      return run_hashes[static_cast<size_t>(n) % kKeptRuns];
    };
    const uint64_t previous = kept(number - 1).load(std::memory_order_relaxed);
    kept(number).store(runHash(previous, plan_hash, number), std::memory_order_release);
    run.store(number, std::memory_order_release);
  }
  issued.store(-1, std::memory_order_relaxed);
  phase.store(RankPhase::Computing, std::memory_order_release);
}

// The entry at the index of run `number` may belong to a different run. The low bits of the entry
// show to which run it belongs.
uint64_t RankSnapshot::hashOfRun(int64_t number) const {
  const uint64_t hash = run_hashes[static_cast<size_t>(number) % kKeptRuns];
  const bool same = (hash & kNumberMask) == (static_cast<uint64_t>(number) & kNumberMask);
  return number > 0 && same ? hash : 0;
}

RankSnapshot read(const RankStatus& status, int rank) {
  RankSnapshot facts;
  facts.rank = rank;
  facts.state = status.state.get();
  forEachFact(status, facts, [](const auto& from, auto& to) { to = from.load(); });
  if (facts.phase == RankPhase::Computing && facts.communicating >= 0) {
    facts.phase = RankPhase::Communicating;
  }
  if (facts.state != RankState::Alive) facts.reason = status.state.reason();
  return facts;
}

std::vector<RankSnapshot> readAll(std::span<const RankStatus> statuses) {
  std::vector<RankSnapshot> all;
  for (const RankStatus& status : statuses)
    all.push_back(read(status, static_cast<int>(all.size())));
  return all;
}

int64_t firstDifferentRun(const RankSnapshot& a, const RankSnapshot& b) {
  const int64_t first = std::max(a.run, b.run) - static_cast<int64_t>(kKeptRuns) + 1;
  for (int64_t run = std::max<int64_t>(first, 1); run <= std::min(a.run, b.run); ++run) {
    const uint64_t one = a.hashOfRun(run), other = b.hashOfRun(run);
    if (one != 0 && other != 0 && one != other) return run;
  }
  return 0;
}

void mirror(RankStatus& status, const RankSnapshot& facts) {
  forEachFact(status, facts, [](auto& to, const auto& from) { to.store(from); });
  if (facts.state > RankState::Writing) status.state.leave(facts.state, facts.reason);
}

}  // namespace heddle::comm
