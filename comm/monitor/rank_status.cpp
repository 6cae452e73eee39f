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

uint64_t BoardSlot::continued(uint64_t before, uint64_t plan_hash, int64_t number) {
  // The finalizer of splitmix64 over both.
  uint64_t x = (before >> kNumberBits) * 0x9e3779b97f4a7c15 + plan_hash;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  x ^= x >> 31;
  const uint64_t tag = static_cast<uint64_t>(number) & kNumber;
  return (x | uint64_t{1} << kNumberBits) >> kNumberBits << kNumberBits | tag;
}

bool ranDifferently(const BoardSlot& a, const BoardSlot& b) {
  for (size_t i = 0; i < BoardSlot::kKeptRuns; ++i) {
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

bool BoardSlot::tell(RankState what, const std::string& why) noexcept {
  RankState before = RankState::Well;
  if (!state.compare_exchange_strong(before, RankState::Telling)) return false;
  setText(reason, kReasonBytes, why);
  state.store(what, std::memory_order_release);
  return true;
}

BoardEntry read(const BoardSlot& slot, int rank) {
  BoardEntry entry;
  entry.rank = rank;
  entry.state = slot.state.load(std::memory_order_acquire);
  if (entry.state == RankState::Absent) return entry;
  // A pair that belongs together, or none: a run begins rarely.
  const int64_t run = slot.run.load();
  const uint64_t plan = slot.plan.load();
  if (run == slot.run.load() && run > 0) entry.plan = plan;
  entry.run = run < 0 ? -run : run;
  entry.finished = slot.finished.load(std::memory_order_acquire);
  entry.phase = slot.phase.load(std::memory_order_acquire);
  entry.program = slot.program.load(std::memory_order_relaxed);
  entry.issued = slot.issued.load(std::memory_order_relaxed);
  entry.computing = slot.computing.load(std::memory_order_relaxed);
  entry.communicating = slot.communicating.load(std::memory_order_relaxed);
  if (entry.phase == RankPhase::Computing && entry.communicating >= 0) {
    entry.phase = RankPhase::Communicating;
  }
  entry.pid = slot.pid.load(std::memory_order_relaxed);
  entry.started = slot.started.load(std::memory_order_relaxed);
  entry.heartbeat = slot.heartbeat.load(std::memory_order_relaxed);
  entry.progress = slot.progress.load(std::memory_order_relaxed);
  entry.host = textOf(slot.host, BoardSlot::kHostBytes);
  if (entry.isLost() || entry.state == RankState::Left) {
    entry.reason = textOf(slot.reason, BoardSlot::kReasonBytes);
  }
  return entry;
}

void mirror(BoardSlot& slot, const BoardEntry& entry) {
  const RankState before = slot.state.load(std::memory_order_relaxed);
  if (entry.state == RankState::Absent || entry.state == RankState::Telling) return;
  slot.program.store(entry.program, std::memory_order_relaxed);
  slot.run.store(-entry.run);
  slot.plan.store(entry.plan);
  if (entry.plan != 0) slot.run.store(entry.run);
  slot.finished.store(entry.finished, std::memory_order_relaxed);
  slot.issued.store(entry.issued, std::memory_order_relaxed);
  slot.computing.store(entry.computing, std::memory_order_relaxed);
  slot.communicating.store(entry.communicating, std::memory_order_relaxed);
  slot.phase.store(entry.phase, std::memory_order_release);
  slot.pid.store(entry.pid, std::memory_order_relaxed);
  slot.started.store(entry.started, std::memory_order_relaxed);
  slot.progress.store(entry.progress, std::memory_order_relaxed);
  slot.heartbeat.store(entry.heartbeat, std::memory_order_relaxed);
  if (before == RankState::Absent) {
    setText(slot.host, BoardSlot::kHostBytes, entry.host);
    slot.state.store(RankState::Well, std::memory_order_release);
  }
  if (entry.state != RankState::Well) slot.tell(entry.state, entry.reason);
}

}  // namespace heddle::comm
