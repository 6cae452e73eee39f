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
// reason, heartbeat, run, instruction, task (RankTask) and collective calls of its World
// (comm/communicator.h). comm/monitor/detection.h lists the failures and the facts that reveal
// them.
namespace heddle::comm {

enum class RankState : uint32_t {
  Alive,
  Writing,  // no longer Alive; a thread is writing the reason
  Failed,   // the rank itself reported a failure
  Left,     // left the job without a failure of its own
  Gone,     // its process ended or its TCP connection broke, but the rank had not left the job
  Lost,     // a job monitor blamed this rank, for example because its process is stopped
  Stuck,    // a job monitor found a wait that does not end, and blamed this rank
};

// Returns whether a rank in this state makes the job fail.
constexpr bool isLost(RankState state) {
  return state == RankState::Failed || state == RankState::Gone || state == RankState::Lost ||
         state == RankState::Stuck;
}

// What a rank does at present. If the state of the rank is not Alive: what the rank did last.
enum class RankPhase : uint32_t {
  Idle,  // before the first run
  Compiling,
  Computing,      // in a run
  Communicating,  // in a run, and waits for other ranks
  Done,           // between runs
  Ended,          // begins no more runs
  Unwinding,      // begins no more runs, because of an exception
};

// The kind of the collective call of its World in which a rank waits for other ranks.
enum class RankWait : uint32_t {
  None,  // the rank waits in no such call
  Job,   // all ranks of the job make the call
  Some,  // only some ranks make the call
};

// If RankStatus::heartbeat has this value, the rank never counts as silent. The last message of a
// TCP connection (comm/monitor/tcp_link.h) contains this value as the heartbeat of each rank in the
// message, because no later heartbeat will arrive.
constexpr uint64_t kUnwatched = UINT64_MAX;

// If RankStatus::issued has this value, the rank is at the beginning of a run. It compares with the
// other ranks which collectives, sends and receives they will post
// (host/run/match_collectives_across_ranks.h).
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
  // Returns the reason. The reason is empty while the state is Alive or Writing.
  std::string reason() const;

 private:
  std::atomic<RankState> state_{RankState::Alive};
  char reason_[kReasonBytes] = "";
};

// RankStatus::run_hashes keeps one entry for each of the latest kKeptRuns runs. The entry of run n
// is at index n % kKeptRuns. The high 32 bits of the entry are a hash of the plans of run n and of
// all earlier runs. The low 32 bits are those of n. An entry of 0 belongs to no run.
constexpr size_t kKeptRuns = 8;
// Returns the entry of run `run`, from the entry of the previous run and the hash of the plan of
// this run.
uint64_t runHash(uint64_t hash_of_previous_run, uint64_t plan, int64_t run);

// The numeric facts of a rank, except its heartbeat and its state. Field<T> is std::atomic<T> or T.
template <template <class> class Field>
struct RankNumbers {
  // Instruction: `issued`, `computing` and `communicating` are indices into the instructions of
  // `program`; -1: none.
  Field<uint64_t> program{0};        // hash of the program whose run began last
  Field<int32_t> issued{-1};         // latest instruction that the host issued; or kMatchingPosts
  Field<int32_t> computing{-1};      // instruction that a CPU stream began last; -1 after its end
  Field<int32_t> communicating{-1};  // like `computing`, for collectives, sends and receives
  // The number of calls of RankStatus::begin(), plus the number of times that the rank began its
  // current task again.
  Field<uint64_t> progress{0};

  // Run: `run` and `finished` are numbers of runs, starting at 1. Only runs from
  // RankActivity::beginRun() have these numbers: runs of programs that communicate on some rank,
  // and the creation of further Executables.
  Field<RankPhase> phase{RankPhase::Idle};
  Field<int64_t> run{0};       // the latest run
  Field<int64_t> finished{0};  // this run and all earlier runs have ended
  std::array<Field<uint64_t>, kKeptRuns> run_hashes{};

  // Task and World: `wait` and `calls` are about collective calls of the World. `calls` counts only
  // the calls that all ranks of the job make.
  Field<RankTask> task{RankTask::None};
  Field<RankWait> wait{RankWait::None};
  Field<uint64_t> calls{0};  // number of calls that this rank has begun
};

// The facts of one rank, in memory that the ranks of its machine share. If the process of
// the rank is killed, other processes can still read this memory. The rank and its streams write
// all fields except `heartbeat`, which the watcher (comm/monitor/watcher.h) writes, and `state`,
// which any rank may change. Each other machine keeps a copy, which mirror() writes. No access
// takes a lock, and every access to a number is atomic. Any thread may read.
struct alignas(64) RankStatus : RankNumbers<std::atomic> {
  // The watcher in the process of the rank increases this number in each poll.
  alignas(64) std::atomic<uint64_t> heartbeat{0};
  StateWithReason state;
  // The rank has printed why it ends, or has destroyed its monitor. Other machines do not get this
  // field.
  std::atomic<bool> reported{false};

  // Begins a run. If `counts` is true, increments `run` and adds the entry of the run to
  // `run_hashes`. RankActivity (comm/monitor/rank_activity.h) calls this function, and passes true
  // in RankActivity::beginRun(). It also writes `finished` and the later phases of the run.
  void beginRun(uint64_t program_hash, uint64_t plan_hash, bool counts);
  // The streams of a CPU device call begin() before and end() after each piece of work of an
  // instruction. Other devices do not call them.
  void begin(int32_t instruction, bool communicates) {
    (communicates ? communicating : computing).store(instruction, std::memory_order_relaxed);
    progress.fetch_add(1, std::memory_order_relaxed);
  }
  void end(int32_t instruction, bool communicates) {
    std::atomic<int32_t>& current = communicates ? communicating : computing;
    current.compare_exchange_strong(instruction, -1, std::memory_order_relaxed);
  }
};

// The numeric facts of one rank at one moment. TcpLink (comm/monitor/tcp_link.h) sends the bytes of
// this struct.
struct RankFacts : RankNumbers<std::type_identity_t> {
  int32_t rank = 0;
  RankState state = RankState::Alive;
  uint64_t heartbeat = 0;
};

// All facts of one rank at one moment, except RankStatus::reported.
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
  // Returns whether the rank has finished run `number`, or will never finish it because it has left
  // or begins no more runs.
  bool isPast(int64_t number) const {
    return finished >= number || beginsNoMoreRuns() || state == RankState::Left;
  }
  bool isLost() const { return comm::isLost(state); }
  // Returns the entry of run `number` in run_hashes, or 0 if the run is not among the latest
  // kKeptRuns runs.
  uint64_t hashOfRun(int64_t number) const;
};
// Returns a snapshot of the status of `rank`. If the phase is Computing, but a CPU stream executes
// a collective, a send or a receive, the phase of the snapshot is Communicating.
RankSnapshot read(const RankStatus& status, int rank);
// Returns a snapshot per rank, indexed by rank.
std::vector<RankSnapshot> readAll(std::span<const RankStatus> statuses);
// Compares the runs whose hashes both snapshots have kept. Returns the lowest number of a run whose
// hashes differ, or 0 if there is no such run.
int64_t firstDifferentRun(const RankSnapshot& a, const RankSnapshot& b);
// Copies `facts`, which arrived from another machine, into `status`. `status` is this machine's
// copy of the status of the rank `facts.rank`.
void mirror(RankStatus& status, const RankSnapshot& facts);

}  // namespace heddle::comm
