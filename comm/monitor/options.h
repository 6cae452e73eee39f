#pragma once

#include <atomic>
#include <functional>
#include <string>

namespace heddle::comm {

// What ended a job.
struct JobFailure {
  int rank = -1;      // the one to blame; -1: none
  bool told = false;  // by that rank itself, which says why
  int signal = 0;     // the signal that told this process to end
  std::string text;   // who, where and why, then a line a rank: number and text of its instruction
};

struct JobMonitorOptions {
  // Seconds after which no rank still waits for one that has failed, was killed or stopped, or has
  // left in the middle of a run.
  double deadline = 10;
  // Seconds for which a rank may wait in a collective while nothing moves on any rank and none
  // compiles; 0: for ever. A job in which some rank computes for longer is ended.
  double patience = 600;
  // Seconds in which the ranks of the job must have come together to make the job monitor, once the
  // first of them waits for it; 0: for ever. Then World::interrupt, so that who waits gets a
  // UserError.
  double start = 600;
  // Called on a thread of the job monitor when a peer is lost, at most once; it must not destroy
  // the job monitor. Empty: World::interrupt, so that what this rank waits for throws UserError;
  // and in a job of several processes stderr has the text at once, for MPI may end one before it
  // has unwound.
  std::function<void(const JobFailure&)> on_failure;
  // Where a signal handler leaves its number: the job's end, told to on_failure after a moment in
  // which a cause may show.
  const std::atomic<int>* end_signal = nullptr;
  // Equal on the ranks that share memory; empty: those of one machine.
  std::string host_key;
};

}  // namespace heddle::comm
