#pragma once

#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "comm/monitor/job_monitor.h"

// How the ranks of a job that fails come to their end.
namespace heddle::tools {

// The errors of ranks that are threads of this process, and what their monitor_options job monitors
// say.
class RankErrors {
 public:
  // `job monitor`: nullptr when it was not made.
  void keep(std::exception_ptr error, int rank, const comm::JobMonitor* monitor);
  // The cause, if anything was kept, with a line for each rank of a job of several.
  void rethrow(int ranks);

 private:
  std::mutex mutex_;
  int first_ = -1;
  std::map<int, std::exception_ptr> errors_;
  std::optional<comm::JobFailure> failure_;
};

// From here on a SIGTERM is left for who looks at endSignal(): comm::StartTimeout, then the
// monitor_options job monitor, as long as a WatcherPoll lives. Afterwards it ends the process.
void catchEndSignal();
// On a thread of comm::StartTimeout: prints why the job has not started and ends this process.
[[noreturn]] void endBeforeStart(const std::string& text, int signal);
// The signal that came; for JobMonitorOptions::end_signal.
const std::atomic<int>& endSignal();
// As long as it lives the monitor_options job monitor of this process, which outlives it, looks at
// endSignal(), and what ends the process asks it for the other ranks. When the process is at its
// end by then, the destructor does not return.
class WatcherPoll {
 public:
  // `deadline`: that of the job monitor.
  WatcherPoll(comm::JobMonitor& monitor, double deadline);
  ~WatcherPoll();
  WatcherPoll(const WatcherPoll&) = delete;
  WatcherPoll& operator=(const WatcherPoll&) = delete;
};

// A process that is one rank ends when the others have printed too, or after a part of the deadline
// that is left for it: as soon as one is gone mpirun kills the rest. Compilers that it has started
// end before it.

// JobMonitorOptions::on_failure: prints the failure, and has a thread of its own end the process.
void endProcess(int rank, const comm::JobFailure& failure);
// The rank has thrown: says why and ends the process.
[[noreturn]] void endFailedProcess(const comm::JobMonitor& monitor, const std::string& reason,
                                   int code);

}  // namespace heddle::tools
