#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// The five facts that each rank publishes: state, heartbeat, run, instruction, reason.
// comm/monitor/detection.h lists the failures that each fact reveals.
namespace heddle::comm {

enum class RankState : uint32_t {
  Alive,
  Writing,  // left Alive; a thread is writing the reason
  Failed,   // the rank itself reported a failure
  Left,     // ended in good order, or because another rank failed
  Gone,     // its process ended without leaving
  Lost,     // another rank reported it: stopped, silent, or not in the run of the others
};

// Returns whether the state ends the job.
constexpr bool isLost(RankState state) {
  return state == RankState::Failed || state == RankState::Gone || state == RankState::Lost;
}

// What a rank does, or did when its state left Alive.
enum class RankPhase : uint32_t {
  Idle,  // before the first run
  Compiling,
  Computing,
  Communicating,  // waits for other ranks
  Done,           // between runs
  Ended,          // begins no more runs
  Unwinding,      // begins no more runs, because of an exception
};
std::string_view name(RankPhase phase);

// A heartbeat that is no longer updated in this memory, so silence has no meaning.
constexpr uint64_t kUnwatched = UINT64_MAX;

// RankStatus::issued of a rank that has begun a run and waits for the other ranks, to compare what
// they will post (host/run/match_collectives_across_ranks.h). It has issued nothing yet.
constexpr int32_t kMatchingPosts = -2;

// A state that leaves Alive once, and the reason. Lives in memory that several processes may map.
// Thread-safe; no function waits.
class StateWithReason {
 public:
  static constexpr size_t kReasonBytes = 1024;

  RankState get() const noexcept { return state_.load(); }
  // Changes Alive to `to`, and truncates `reason` to kReasonBytes. Returns false if the state is
  // not Alive.
  bool leave(RankState to, std::string_view reason) noexcept;
  // Returns an empty string while the state is Alive or Writing.
  std::string reason() const;

 private:
  std::atomic<RankState> state_{RankState::Alive};
  char reason_[kReasonBytes] = "";
};

// The latest runs of a rank: for run n, at index n % kKeptRuns, a hash over the plans of run n and
// of all earlier runs (high 32 bits) and n itself (low 32 bits). 0: no run.
constexpr size_t kKeptRuns = 8;
uint64_t runHash(uint64_t hash_of_previous_run, uint64_t plan, int64_t run);

// The facts of one rank, in memory that outlives its process. The rank and its streams write all
// but `state` and `heartbeat`, without locks and without waiting. Any thread may read.
struct alignas(64) RankStatus {
  // Instruction.
  std::atomic<uint64_t> program{0};        // hash of the program that runs
  std::atomic<int32_t> issued{-1};         // the host issued it last; kMatchingPosts
  std::atomic<int32_t> computing{-1};      // a stream of the CPU executes it; -1: none
  std::atomic<int32_t> communicating{-1};  // the same for collectives, sends and receives
  std::atomic<uint64_t> progress{0};       // instructions that streams have begun

  // Run. Counts only runs of programs that communicate on some rank.
  std::atomic<RankPhase> phase{RankPhase::Idle};
  std::atomic<int64_t> run{0};       // begun last
  std::atomic<int64_t> finished{0};  // this run and all earlier ones have ended
  std::array<std::atomic<uint64_t>, kKeptRuns> run_hashes{};

  alignas(64) std::atomic<uint64_t> heartbeat{0};  // written by the watcher of the process
  StateWithReason state;
  std::atomic<bool> reported{false};  // the process has printed why it ends; known on its host only

  // Begins a run. `counts`: the program communicates on some rank. RankActivity writes `finished`
  // and the later phases.
  void beginRun(uint64_t program_hash, uint64_t plan_hash, bool counts);
  // For streams, around each instruction.
  void begin(int32_t instruction, bool communicates) {
    (communicates ? communicating : computing).store(instruction, std::memory_order_relaxed);
    progress.fetch_add(1, std::memory_order_relaxed);
  }
  void end(int32_t instruction, bool communicates) {
    std::atomic<int32_t>& current = communicates ? communicating : computing;
    current.compare_exchange_strong(instruction, -1, std::memory_order_relaxed);
  }
};

// The numbers of a snapshot, in the order in which TCP carries them.
struct RankFacts {
  int32_t rank = 0;
  RankState state = RankState::Alive;
  RankPhase phase = RankPhase::Idle;
  int32_t issued = -1, computing = -1, communicating = -1;
  int64_t run = 0, finished = 0;
  uint64_t program = 0, progress = 0, heartbeat = 0;
  std::array<uint64_t, kKeptRuns> run_hashes{};
};

// The facts of one rank at one moment.
struct RankSnapshot : RankFacts {
  std::string reason;

  bool isInRun() const {
    return phase == RankPhase::Computing || phase == RankPhase::Communicating;
  }
  bool beginsNoMoreRuns() const {
    return phase == RankPhase::Ended || phase == RankPhase::Unwinding;
  }
  // Returns whether the rank will post nothing more in run `number`.
  bool isPast(int64_t number) const {
    return finished >= number || beginsNoMoreRuns() || state == RankState::Left;
  }
  bool isLost() const { return comm::isLost(state); }
  // Returns 0 if run `number` is not among the latest kKeptRuns.
  uint64_t hashOfRun(int64_t number) const;
};
RankSnapshot read(const RankStatus& status, int rank);
std::vector<RankSnapshot> readAll(std::span<const RankStatus> statuses);
// Returns the first run, of those that both ranks keep, in which their hashes differ; 0: none.
int64_t firstDifferentRun(const RankSnapshot& a, const RankSnapshot& b);
// Copies the facts of a rank of another host into its status on this host.
void mirror(RankStatus& status, const RankSnapshot& facts);

}  // namespace heddle::comm
