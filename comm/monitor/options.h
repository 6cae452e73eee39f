#pragma once

#include <atomic>
#include <functional>
#include <string>

namespace heddle::comm {

// Why a job has failed.
struct JobFailure {
  int rank = -1;      // the rank to blame; -1: none
  bool told = false;  // true: `rank` itself reported the failure
  int signal = 0;     // the signal that asked this process to end; 0: none
  std::string text;   // the rank, its instruction, the reason; then one line per rank
};

struct JobMonitorOptions {
  // Time limit in seconds. When a rank fails, is killed, stops responding or leaves during a run,
  // every other rank stops waiting for it within this limit.
  double deadline = 10;
  // Time limit in seconds for a job without progress; 0: no limit. The job fails if a rank waits
  // for other ranks for this time, in a collective or in a call of its World, while no rank begins
  // an instruction, a task or a call of its World. So a single computation must not take longer
  // while another rank waits for it. The limit is 10 times as long while a rank compiles, reads its
  // files or copies its inputs. It also applies to MPI_Finalize, if heddle initialised MPI.
  double patience = 600;
  // Time limit in seconds for the start; 0: no limit. This rank waits until all other ranks create
  // their monitors. After this time the waiting call throws UserError.
  double start = 600;
  // Called at most once, on a thread of the monitor, when the job has failed. The function must not
  // destroy the monitor. The default calls World::interrupt(), and the waiting calls of this rank
  // then throw UserError. In a job of several processes, the default also prints the text to stderr
  // at once. Otherwise MPI might end the process before the program reports its exception.
  std::function<void(const JobFailure&)> on_failure;
  // A signal handler stores the number of a signal here. The monitor then reports the end of the
  // job after 0.1 s. If the monitor detects another failure in this time, it reports that failure
  // instead, because it probably caused the signal.
  const std::atomic<int>* end_signal = nullptr;
  // A key that is equal for ranks that share memory. Empty: the ranks of one host share memory.
  std::string host_key;
};

}  // namespace heddle::comm
