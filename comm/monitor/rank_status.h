#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "comm/rank_task.h"

// The facts that each rank publishes, so that the other ranks can detect its failure: state,
// reason, heartbeat, run and instruction, and outside of runs the task (RankTask).
// comm/monitor/detection.h lists the failures that each fact reveals.
namespace heddle::comm {

enum class RankState : uint32_t {
  Alive,
  Writing,  // no longer Alive; a thread is writing the reason
  Failed,   // the rank itself reported its failure
  Left,     // left the job without a failure of its own
  Gone,     // its process ended, but the rank had not left the job
  Lost,     // another rank reported a failure of this rank, for example that it is stopped
  Stuck,    // another rank reported that the job makes no progress because of this rank
};

// Returns whether a rank in this state makes the job fail.
constexpr bool isLost(RankState state) {
  return state == RankState::Failed || state == RankState::Gone || state == RankState::Lost ||
         state == RankState::Stuck;
}

// The current activity of a rank. If its state is not Alive, this is its last activity.
enum class RankPhase : uint32_t {
  Idle,  // before the first run
  Compiling,
  Computing,
  Communicating,  // waits for other ranks
  Done,           // between runs
  Ended,          // begins no more runs
  Unwinding,      // begins no more runs, because of an exception
};

// A collective call of the World in which a rank waits for other ranks.
enum class RankWait : uint32_t {
  None,
  Job,   // all ranks of the job make the call
  Some,  // only some ranks make the call
};

// If RankStatus::heartbeat has this value, the rank never counts as silent. The last message of a
// TCP connection (comm/monitor/tcp_link.h) contains this value as the heartbeat of each rank,
// because no later heartbeat will arrive.
constexpr uint64_t kUnwatched = UINT64_MAX;

// If RankStatus::issued has this value, the rank is at the beginning of a run, and compares with
// the other ranks which collectives they will post (host/run/match_collectives_across_ranks.h).
constexpr int32_t kMatchingPosts = -2;

// The state of a rank and the reason for the state. The state changes only once, from Alive through
// Writing to a final state. Several processes may map the memory of this object. Thread-safe; no
// function waits.
class StateWithReason {
 public:
  static constexpr size_t kReasonBytes = 1024;

  RankState get() const noexcept { return state_.load(); }
  // Changes the state from Alive to `to` and stores `reason`, truncated to kReasonBytes - 1 bytes.
  // Does nothing and returns false if the state is not Alive.
  bool leave(RankState to, std::string_view reason) noexcept;
  // Returns an empty string while the state is Alive or Writing.
  std::string reason() const;

 private:
  std::atomic<RankState> state_{RankState::Alive};
  char reason_[kReasonBytes] = "";
};

// RankStatus::run_hashes keeps one entry for each of the latest kKeptRuns runs. The entry of run n
// is at index n % kKeptRuns. The high 32 bits of the entry are a hash of the plans of run n and of
// all earlier runs. The low 32 bits are n. An entry of 0 belongs to no run.
constexpr size_t kKeptRuns = 8;
uint64_t runHash(uint64_t hash_of_previous_run, uint64_t plan, int64_t run);

// The facts of a rank that are numbers. Field<T> is std::atomic<T> or T.
template <template <class> class Field>
struct RankNumbers {
  // Instruction: `issued`, `computing` and `communicating` are indices into the instructions of
  // `program`; -1: none.
  Field<uint64_t> program{0};        // hash of the program that runs
  Field<int32_t> issued{-1};         // latest instruction that the host issued; or kMatchingPosts
  Field<int32_t> computing{-1};      // latest instruction that a CPU stream executes now
  Field<int32_t> communicating{-1};  // like `computing`, for collectives, sends and receives
  // The number of instructions that CPU streams have begun, plus the number of times that a task
  // was set again.
  Field<uint64_t> progress{0};

  // Run: `run` and `finished` are numbers of runs, starting at 1. Only runs of programs that
  // communicate on some rank have numbers here.
  Field<RankPhase> phase{RankPhase::Idle};
  Field<int64_t> run{0};       // the latest run
  Field<int64_t> finished{0};  // this run and all earlier runs have ended
  std::array<Field<uint64_t>, kKeptRuns> run_hashes{};

  // Outside of runs. `calls` counts the calls of the World that all ranks make.
  Field<RankTask> task{RankTask::None};
  Field<RankWait> wait{RankWait::None};
  Field<uint64_t> calls{0};  // number of calls that this rank has begun
};

// The facts of one rank, in memory that outlives its process. The rank and its streams write all
// fields except `heartbeat`, which the watcher writes, and `state`, which any rank may change.
// On other machines, mirror() writes a copy. Every access is an atomic operation, without a lock.
// Any thread may read.
struct alignas(64) RankStatus : RankNumbers<std::atomic> {
  // The watcher of the process increases this number in each poll.
  alignas(64) std::atomic<uint64_t> heartbeat{0};
  StateWithReason state;
  // The process has printed why it ends. Other machines do not get this field.
  std::atomic<bool> reported{false};

  // Begins a run. If `counts` is true, adds the run to `run` and `run_hashes`. Pass true if the
  // program communicates on some rank. RankActivity (comm/monitor/rank_activity.h) writes
  // `finished` and the later phases of the run.
  void beginRun(uint64_t program_hash, uint64_t plan_hash, bool counts);
  // The streams of a CPU device call begin() before and end() after each instruction. Other devices
  // do not call them.
  void begin(int32_t instruction, bool communicates) {
    (communicates ? communicating : computing).store(instruction, std::memory_order_relaxed);
    progress.fetch_add(1, std::memory_order_relaxed);
  }
  void end(int32_t instruction, bool communicates) {
    std::atomic<int32_t>& current = communicates ? communicating : computing;
    current.compare_exchange_strong(instruction, -1, std::memory_order_relaxed);
  }
};

// The numeric fields of a snapshot. TCP carries the bytes of this struct.
struct RankFacts : RankNumbers<std::type_identity_t> {
  int32_t rank = 0;
  RankState state = RankState::Alive;
  uint64_t heartbeat = 0;
};

// The facts of one rank at one moment.
struct RankSnapshot : RankFacts {
  std::string reason;

  bool isInRun() const {
    return phase == RankPhase::Computing || phase == RankPhase::Communicating;
  }
  // Returns whether the rank waits for other ranks, in a run or in a call of its World.
  bool waits() const { return phase == RankPhase::Communicating || wait != RankWait::None; }
  bool beginsNoMoreRuns() const {
    return phase == RankPhase::Ended || phase == RankPhase::Unwinding;
  }
  // Returns whether the rank has finished run `number`, or will never begin it.
  bool isPast(int64_t number) const {
    return finished >= number || beginsNoMoreRuns() || state == RankState::Left;
  }
  bool isLost() const { return comm::isLost(state); }
  // Returns the entry of run `number` in run_hashes, or 0 if the run is not among the latest
  // kKeptRuns runs.
  uint64_t hashOfRun(int64_t number) const;
};
// Returns a snapshot of the status of `rank`. If the phase is Computing, but a stream executes a
// collective, a send or a receive, the phase of the snapshot is Communicating.
RankSnapshot read(const RankStatus& status, int rank);
// Returns a snapshot per rank, indexed by rank.
std::vector<RankSnapshot> readAll(std::span<const RankStatus> statuses);
// Compares the runs whose hashes both snapshots have kept. Returns the lowest number of a run whose
// hashes differ, or 0 if there is no such run.
int64_t firstDifferentRun(const RankSnapshot& a, const RankSnapshot& b);
// Copies `facts`, which arrived from another machine, into `status`. `status` is the copy that this
// machine keeps of the status of the same rank.
void mirror(RankStatus& status, const RankSnapshot& facts);

}  // namespace heddle::comm
