#pragma once

#include <atomic>
#include <functional>
#include <string>

namespace heddle::comm {

// Why a job has failed.
struct JobFailure {
  int rank = -1;      // the rank to blame; -1: none
  bool told = false;  // that rank reported the failure itself
  int signal = 0;     // the signal that told this process to end; 0: none
  std::string text;   // rank, instruction and reason, then one line per rank
};

struct JobMonitorOptions {
  // Time limit in seconds. When a rank fails, is killed, stops responding or leaves during a run,
  // every other rank stops waiting for it within this limit.
  double deadline = 10;
  // Seconds for which a rank may wait in a collective while nothing moves on any rank and no rank
  // compiles; 0: no limit. A rank that computes for longer while another rank waits ends the job.
  double patience = 600;
  // Seconds in which all ranks must create the monitor, from the moment when this rank waits for
  // the other ranks; 0: no limit. After it the waiting call throws UserError.
  double start = 600;
  // Called at most once, on a thread of the monitor, when the job has failed. It must not destroy
  // the monitor. Default: calls World::interrupt, so that the waiting calls of this rank throw
  // UserError. In a job of several processes the default also prints the text to stderr at once,
  // because MPI may end a process before it has reported its exception.
  std::function<void(const JobFailure&)> on_failure;
  // A signal handler stores its signal number here. The monitor then reports the end of the job
  // after 0.1 s, because the cause may show in that time.
  const std::atomic<int>* end_signal = nullptr;
  // Equal on ranks that share memory. Empty: the ranks of one host share memory.
  std::string host_key;
};

}  // namespace heddle::comm
