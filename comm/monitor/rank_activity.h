#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "comm/monitor/rank_status.h"

namespace heddle::comm {

enum class Activity {
  Compiling,      // compiles kernels or prepares the plan of a run, which may take long
  Waiting,        // waits for other ranks, in a run that has begun
  MatchingPosts,  // waits for other ranks, to compare which operations the run will post
};

// Counts the activities and the unfinished runs of one rank, for all of its threads and programs,
// and writes the phase of the rank (RankPhase) to its status. A run is one execution of a host
// program. The creation of a further Executable by all ranks together is also reported as a run
// (ProgramCache in host/program_cache.h). The phase is the first of these that applies:
// - Compiling, while a thread has the activity Compiling;
// - Communicating, while a thread has the activity Waiting or MatchingPosts;
// - Computing, while a run has not ended;
// - otherwise a phase between runs: Idle, Done, Ended or Unwinding.
// Thread-safe; holds its lock only briefly.
class RankActivity {
 public:
  // Only this object may write `run`, `finished`, `phase` and `run_hashes` of `status`.
  explicit RankActivity(RankStatus& status) : status_(status) {}

  void begin(Activity activity);
  void end(Activity activity);

  // Begins a run of a program that communicates on some rank. All ranks count these runs. Returns
  // the number of the run in the job, starting at 1.
  // - `program` and `plan` are hashes of the program and of the plan.
  // - `chain` is the id of a chain: a sequence of runs that end in the order in which they began.
  //   0: the run belongs to no chain.
  int64_t beginRun(uint64_t program, uint64_t plan, int64_t chain);
  // Begins a run of a program that communicates on no rank. Returns a negative number, with which
  // endRun() ends the run. Only this rank counts these runs. `chain` is as in beginRun(). One chain
  // may contain runs from beginRun() and from beginLocalRun().
  int64_t beginLocalRun(uint64_t program, int64_t chain);
  // Ends run `number`. If the run belongs to a chain, all earlier runs of the chain also end.
  // Returns false if the run has already ended.
  bool endRun(int64_t number);

  // Declares that this rank will begin no more runs. Pass true for `unwinds` if an exception is the
  // cause.
  void endRuns(bool unwinds = false);
  // Revokes endRuns(): this rank may begin runs again.
  void resume();

 private:
  struct Open {
    int64_t number;
    int64_t chain;
  };
  int64_t open(int64_t number, uint64_t program, uint64_t plan, int64_t chain);
  void publish();

  RankStatus& status_;
  std::mutex mutex_;
  std::vector<Open> open_;  // runs that have not ended, in the order in which they began
  int64_t local_runs_ = 0;
  int compiling_ = 0;
  int waiting_ = 0;
  RankPhase phase_between_runs_ = RankPhase::Idle;
  bool begun_ = false;
};

}  // namespace heddle::comm
