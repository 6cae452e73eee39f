#include "comm/monitor/rank_status.h"

#include <algorithm>
#include <cstring>

namespace heddle::comm {
namespace {

void setText(char* to, size_t bytes, const std::string& text) {
  const size_t length = std::min(bytes - 1, text.size());
  std::memcpy(to, text.data(), length);
  to[length] = '\0';
}

constexpr uint64_t kNumberBits = 32, kNumber = (uint64_t{1} << kNumberBits) - 1;  // of a history

std::string textOf(const char* from, size_t bytes) { return {from, strnlen(from, bytes)}; }

}  // namespace

std::string_view name(RankPhase phase) {
  switch (phase) {
    case RankPhase::Idle:
      return "idle";
    case RankPhase::Compiling:
      return "compiling";
    case RankPhase::Computing:
      return "computing";
    case RankPhase::Communicating:
      return "communicating";
    case RankPhase::Done:
      return "done";
    case RankPhase::Ended:
      return "finished";
  }
  return "?";
}

uint64_t RankStatus::continued(uint64_t before, uint64_t plan_hash, int64_t number) {
  // The finalizer of splitmix64 over both.
  uint64_t x = (before >> kNumberBits) * 0x9e3779b97f4a7c15 + plan_hash;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  x ^= x >> 31;
  const uint64_t tag = static_cast<uint64_t>(number) & kNumber;
  return (x | uint64_t{1} << kNumberBits) >> kNumberBits << kNumberBits | tag;
}

bool ranDifferently(const RankStatus& a, const RankStatus& b) {
  for (size_t i = 0; i < RankStatus::kKeptRuns; ++i) {
    const uint64_t one = a.history[i].load(std::memory_order_acquire);
    const uint64_t other = b.history[i].load(std::memory_order_acquire);
    const bool same_run = one != 0 && other != 0 && ((one ^ other) & kNumber) == 0;
    if (same_run && one != other) return true;
  }
  return false;
}

std::string differentRuns(int than_rank) {
  return "it has made other runs than rank " + std::to_string(than_rank) +
         ": with other sizes, or of another of its Executables";
}

bool RankStatus::tell(RankState what, const std::string& why) noexcept {
  RankState before = RankState::Well;
  if (!state.compare_exchange_strong(before, RankState::Telling)) return false;
  setText(reason, kReasonBytes, why);
  state.store(what, std::memory_order_release);
  return true;
}

RankSnapshot read(const RankStatus& status, int rank) {
  RankSnapshot entry;
  entry.rank = rank;
  entry.state = status.state.load(std::memory_order_acquire);
  if (entry.state == RankState::Absent) return entry;
  // A pair that belongs together, or none: a run begins rarely.
  const int64_t run = status.run.load();
  const uint64_t plan = status.plan.load();
  if (run == status.run.load() && run > 0) entry.plan = plan;
  entry.run = run < 0 ? -run : run;
  entry.finished = status.finished.load(std::memory_order_acquire);
  entry.phase = status.phase.load(std::memory_order_acquire);
  entry.program = status.program.load(std::memory_order_relaxed);
  entry.issued = status.issued.load(std::memory_order_relaxed);
  entry.computing = status.computing.load(std::memory_order_relaxed);
  entry.communicating = status.communicating.load(std::memory_order_relaxed);
  if (entry.phase == RankPhase::Computing && entry.communicating >= 0) {
    entry.phase = RankPhase::Communicating;
  }
  entry.pid = status.pid.load(std::memory_order_relaxed);
  entry.started = status.started.load(std::memory_order_relaxed);
  entry.heartbeat = status.heartbeat.load(std::memory_order_relaxed);
  entry.progress = status.progress.load(std::memory_order_relaxed);
  entry.host = textOf(status.host, RankStatus::kHostBytes);
  if (entry.isLost() || entry.state == RankState::Left) {
    entry.reason = textOf(status.reason, RankStatus::kReasonBytes);
  }
  return entry;
}

void mirror(RankStatus& status, const RankSnapshot& entry) {
  const RankState before = status.state.load(std::memory_order_relaxed);
  if (entry.state == RankState::Absent || entry.state == RankState::Telling) return;
  status.program.store(entry.program, std::memory_order_relaxed);
  status.run.store(-entry.run);
  status.plan.store(entry.plan);
  if (entry.plan != 0) status.run.store(entry.run);
  status.finished.store(entry.finished, std::memory_order_relaxed);
  status.issued.store(entry.issued, std::memory_order_relaxed);
  status.computing.store(entry.computing, std::memory_order_relaxed);
  status.communicating.store(entry.communicating, std::memory_order_relaxed);
  status.phase.store(entry.phase, std::memory_order_release);
  status.pid.store(entry.pid, std::memory_order_relaxed);
  status.started.store(entry.started, std::memory_order_relaxed);
  status.progress.store(entry.progress, std::memory_order_relaxed);
  status.heartbeat.store(entry.heartbeat, std::memory_order_relaxed);
  if (before == RankState::Absent) {
    setText(status.host, RankStatus::kHostBytes, entry.host);
    status.state.store(RankState::Well, std::memory_order_release);
  }
  if (entry.state != RankState::Well) status.tell(entry.state, entry.reason);
}

}  // namespace heddle::comm
