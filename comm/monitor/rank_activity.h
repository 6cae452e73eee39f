#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "comm/monitor/rank_status.h"

namespace heddle::comm {

enum class Activity {
  Compiling,      // or other work on the host that may take as long
  Waiting,        // for other ranks, in a run that has begun
  MatchingPosts,  // the same, before the run has issued anything
};

// The activities of all threads and programs of one rank. Derives from them the phase that the
// status shows: Compiling while any thread compiles, else in a run while any run has not ended.
// Thread-safe; holds its lock for a few instructions only.
class RankActivity {
 public:
  // Only this object may write run, finished, phase and run_hashes of `status`.
  explicit RankActivity(RankStatus& status) : status_(status) {}

  void begin(Activity activity);
  void end(Activity activity);

  // Begins a run that all ranks count. Returns its number in the job, from 1.
  // `chain`: runs of one chain end in the order in which they began; 0: of no chain.
  int64_t beginRun(uint64_t program, uint64_t plan, int64_t chain);
  // Begins a run that only this rank counts. Returns a negative number. Chains are shared with
  // beginRun().
  int64_t beginLocalRun(uint64_t program, int64_t chain);
  // Ends the run and all earlier ones of its chain. Returns false if it has already ended.
  bool endRun(int64_t number);

  // Declares that no more runs will begin here. `unwinds`: because of an exception, which may
  // still destroy the World and report a reason.
  void endRuns(bool unwinds = false);
  // Revokes endRuns().
  void resume();

 private:
  struct Open {
    int64_t number;
    int64_t chain;
  };
  void publish();

  RankStatus& status_;
  std::mutex mutex_;
  std::vector<Open> open_;  // runs that have not ended, in the order of their begin
  int64_t local_runs_ = 0;
  int compiling_ = 0;
  int waiting_ = 0;
  RankPhase phase_between_runs_ = RankPhase::Idle;
  bool begun_ = false;
};

}  // namespace heddle::comm
