#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "comm/monitor/rank_status.h"

namespace heddle::comm {

// What the threads of one rank do, of all programs on one control job monitor, and the phase that
// its status shows of it: compiling while one compiles, in a run while any run is under way, which
// it is until somebody has asked for its end. Thread-safe; nobody waits but for a few instructions.
class RankActivity {
 public:
  // Writes the status's run, plan, finished and phase, and nobody else does.
  explicit RankActivity(RankStatus& status) : status_(status) {}

  // Around what may take as long as a compiler.
  void beginCompiling();
  void endCompiling();

  // A run that all ranks count. `chain`: runs of one chain, but for 0, end here as they began. The
  // number of the run in the job, from 1.
  int64_t beginRun(uint64_t program, uint64_t plan, int64_t chain);
  // It is over, and what began before it in its chain. False, and of no effect, the second time.
  bool endRun(int64_t number);
  // A run that only this rank counts.
  void beginLocalRun(uint64_t program);
  void endLocalRuns(int64_t runs);

  // Around what waits for peers, in a run that has begun.
  void beginWaiting();
  void endWaiting();

  // Nothing here will begin another run; until resume(). `unwinds`: because of an exception, which
  // may be about to leave the job, and say so.
  void endRuns(bool unwinds = false);
  void resume();

 private:
  struct Open {
    int64_t number;
    int64_t chain;
  };

  void publish();
  RankPhase phase() const;

  RankStatus& status_;
  std::mutex mutex_;
  std::vector<Open> open_;  // by number
  int64_t local_ = 0;       // runs of this rank alone under way
  int compiling_ = 0;
  int waiting_ = 0;
  bool begun_ = false;
  bool ended_ = false;
};

}  // namespace heddle::comm
