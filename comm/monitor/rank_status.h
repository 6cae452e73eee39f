#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace heddle::comm {

// Done: between runs. Ended: will begin no more runs.
enum class RankPhase : uint32_t { Idle, Compiling, Computing, Communicating, Done, Ended };
std::string_view name(RankPhase phase);

enum class RankState : uint32_t {
  Absent,  // not there yet
  Well,
  Telling,  // somebody writes why it is well no more
  Failed,   // says so itself
  Left,     // ended in good order, or because of another rank
  Gone,     // its process ended without a word
  Lost,     // the others say so: it is stopped, silent or in the way
};

// A heartbeat that is no longer kept up where it is read: silence says nothing.
constexpr uint64_t kUnwatched = UINT64_MAX;

// RankStatus::issued of a rank that has begun a run and waits for its peers to compare what they
// will post, before it issues anything (host/run/match_collectives_across_ranks.h).
constexpr int32_t kAgreeing = -2;

// What one rank says of itself, in memory that several processes map. One rank writes the first
// part, its streams without locks and without waiting; anybody reads, field by field.
struct alignas(64) RankStatus {
  static constexpr size_t kHostBytes = 64;
  static constexpr size_t kReasonBytes = 1024;
  static constexpr size_t kKeptRuns = 8;

  std::atomic<uint64_t> heartbeat{0};  // by the process's watcher
  std::atomic<uint64_t> progress{0};   // pieces of work begun
  std::atomic<uint64_t> program{0};    // hash of the text of the program that runs
  std::atomic<uint64_t> plan{0};       // of program and sizes: equal on all ranks of one run
  std::atomic<int64_t> run{0};         // communicating runs begun; negative while `plan` changes
  std::atomic<int64_t> finished{0};    // this run and those before it are over here
  std::atomic<int32_t> issued{-1};     // instruction the host has issued last; kAgreeing
  std::atomic<int32_t> computing{-1};  // instruction a stream has begun last; -1: none
  std::atomic<int32_t> communicating{-1};  // the same of collectives, sends and receives
  std::atomic<RankPhase> phase{RankPhase::Idle};

  // Of the latest runs, by number modulo kKeptRuns: a hash of the plans of that run and all before
  // it, above the low 32 bits of the number. 0: none; always on other hosts, which hear of one
  // run in many.
  alignas(64) std::array<std::atomic<uint64_t>, kKeptRuns> history{};

  alignas(64) std::atomic<RankState> state{RankState::Absent};
  std::atomic<int32_t> pid{0};
  std::atomic<uint64_t> started{0};  // ProcessState::started
  std::atomic<bool> spoken{false};   // says no more of its end; not known on other hosts
  std::atomic<bool> unwinds{false};  // an exception ended its runs; not known on other hosts
  char host[kHostBytes] = "";        // before `state` is Well
  char reason[kReasonBytes] = "";    // before `state` is Failed, Left, Gone or Lost

  // `counts`: the program communicates on some rank, so all ranks number its runs alike. For
  // comm/monitor/rank_activity.h, which sees to `finished` and `phase` when they are over.
  void beginRun(uint64_t program_hash, uint64_t plan_hash, bool counts) {
    program.store(program_hash, std::memory_order_relaxed);
    if (counts) {
      const int64_t number = run.load(std::memory_order_relaxed) + 1;
      run.store(-number);
      plan.store(plan_hash);
      const uint64_t before = historyOf(number - 1).load(std::memory_order_relaxed);
      historyOf(number).store(continued(before, plan_hash, number), std::memory_order_release);
      run.store(number);
    }
    issued.store(-1, std::memory_order_relaxed);
    phase.store(RankPhase::Computing, std::memory_order_release);
  }
  std::atomic<uint64_t>& historyOf(int64_t number) {
    return history[static_cast<size_t>(number) % kKeptRuns];
  }
  // The entry of run `number` after that of the one before it.
  static uint64_t continued(uint64_t before, uint64_t plan_hash, int64_t number);
  void begin(int32_t instruction, bool communicates) {
    (communicates ? communicating : computing).store(instruction, std::memory_order_relaxed);
    progress.fetch_add(1, std::memory_order_relaxed);
  }
  void end(int32_t instruction, bool communicates) {
    std::atomic<int32_t>& place = communicates ? communicating : computing;
    place.compare_exchange_strong(instruction, -1, std::memory_order_relaxed);
  }

  // Well -> `what`, once: false when somebody was first. Does not wait.
  bool tell(RankState what, const std::string& why) noexcept;
};

// A status at one moment.
struct RankSnapshot {
  int rank = 0;
  RankState state = RankState::Absent;
  RankPhase phase = RankPhase::Idle;
  int64_t run = 0;
  int64_t finished = 0;
  uint64_t program = 0;
  uint64_t plan = 0;
  int32_t issued = -1;
  int32_t computing = -1;
  int32_t communicating = -1;
  int pid = 0;
  uint64_t started = 0;
  uint64_t heartbeat = 0;
  uint64_t progress = 0;
  std::string host;
  std::string reason;

  bool isInRun() const {
    return phase == RankPhase::Computing || phase == RankPhase::Communicating;
  }
  // Posts nothing more in that run.
  bool isPast(int64_t number) const {
    return finished >= number || phase == RankPhase::Ended || state == RankState::Left;
  }
  // Ended in a way that ends the others too.
  bool isLost() const {
    return state == RankState::Failed || state == RankState::Gone || state == RankState::Lost;
  }
};
RankSnapshot read(const RankStatus& status, int rank);
// Whether the two have made different runs up to one that both have kept.
bool ranDifferently(const RankStatus& a, const RankStatus& b);
// Why the one that is to blame is lost.
std::string differentRuns(int than_rank);
// Of a rank of another host.
void mirror(RankStatus& status, const RankSnapshot& entry);

}  // namespace heddle::comm
