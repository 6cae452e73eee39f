#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "ir/base/error.h"

namespace heddle::comm {

// Why a job has failed.
struct JobFailure {
  int rank = -1;      // the rank to blame; -1: none
  bool told = false;  // true: `rank` itself reported the failure
  int signal = 0;     // the signal that asked this process to end; 0: none
  // RankLost, or Deadlock if the job makes no progress although no rank is lost.
  ErrorCode code = ErrorCode::RankLost;
  std::string text;  // the rank, its instruction, the reason; then one line per rank
};

struct JobMonitorOptions {
  // Time limit in seconds. When a rank fails, is killed, stops responding or leaves during a run,
  // every other rank stops waiting for it within this limit.
  double deadline = 10;
  // Time limit in seconds for a job without progress; 0: no limit. The job fails if some rank
  // waits for other ranks while, for this long, no rank makes progress. A rank makes progress if it
  // begins an instruction, or begins or ends a run, a task (comm/rank_task.h) or a call of its
  // World (comm/communicator.h). A single computation must therefore not take longer while another
  // rank waits for it. The limit is 10 times as long while a rank compiles, reads its files, copies
  // its inputs or tunes kernels. `patience` also limits the duration of MPI_Finalize, if heddle
  // initialised MPI.
  double patience = 600;
  // Time limit in seconds for the start; 0: no limit. The constructor of the monitor waits until
  // all other ranks create their monitors. After this time, the constructor throws UserError.
  double start = 600;
  // Called at most once when the job has failed, on the thread that polls for failures or in the
  // destructor of the monitor. The function must not destroy the monitor. If there is no function,
  // the monitor calls World::interrupt(), and the waiting calls of this rank then throw UserError.
  // In a job of several processes without a function, the monitor prints JobFailure::text to
  // stderr before it interrupts, because MPI might end the process before the program reports an
  // exception.
  std::function<void(const JobFailure&)> on_failure;
  // A signal handler stores the number of a signal here; nullptr: there is no handler. After 0.1 s
  // the monitor reports the signal as the failure of the job. If the monitor detects the failure of
  // a rank in this time, it reports that failure instead, which probably caused the signal.
  const std::atomic<int>* end_signal = nullptr;
  // The job monitors of ranks with equal keys share the statuses of these ranks in memory. The
  // statuses of all other ranks arrive by TCP. Empty: a key that all processes of this machine
  // have.
  std::string machine_key;
};

}  // namespace heddle::comm
