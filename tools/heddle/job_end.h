#pragma once

#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "comm/monitor/job_monitor.h"
#include "comm/rank_task.h"

// How the ranks of a job end after a failure.
namespace heddle::tools {

// Collects the errors of ranks that are threads of this process, and the failure that their job
// monitors report.
class RankErrors {
 public:
  // Stores an error of `rank`. `monitor` is nullptr if the rank failed before it created one.
  void keep(std::exception_ptr error, int rank, const comm::JobMonitor* monitor);
  // Throws the cause if an error was stored. In a job of several ranks the message has a line per
  // rank.
  void rethrow(int ranks);

 private:
  std::mutex mutex_;
  int first_ = -1;
  std::map<int, std::exception_ptr> errors_;
  std::optional<comm::JobFailure> failure_;
};

// Catches SIGTERM from now on. The handler stores the signal for endSignal(), which
// comm::StartTimeout and then the job monitor poll. After the last WatcherPoll is destroyed, the
// handler ends the process itself.
void catchEndSignal();
// Sets what this process does now, for the message of the handler after the last WatcherPoll.
void setProcessTask(comm::RankTask task);
// Prints why the job has not started and ends this process. Runs on a thread of comm::StartTimeout.
[[noreturn]] void endBeforeStart(const std::string& text, int signal);
// Returns the caught signal, or 0, for JobMonitorOptions::end_signal.
const std::atomic<int>& endSignal();
// While this object lives, the job monitor of this process polls endSignal(), and the functions
// that end the process ask the monitor whether other ranks have printed. The monitor must outlive
// this object. If the process is already ending, the destructor does not return.
class WatcherPoll {
 public:
  // `deadline` is JobMonitorOptions::deadline, in seconds.
  WatcherPoll(comm::JobMonitor& monitor, double deadline);
  ~WatcherPoll();
  WatcherPoll(const WatcherPoll&) = delete;
  WatcherPoll& operator=(const WatcherPoll&) = delete;
};

// A process that is one rank waits before it ends until the other ranks have printed, but at most
// for a part of the deadline. The reason is that mpirun kills all other processes as soon as one is
// gone. Compilers that the process has started end first.

// Prints the failure and lets a new thread end the process. Serves as
// JobMonitorOptions::on_failure.
void endProcess(int rank, const comm::JobFailure& failure);
// Prints why the rank has thrown and ends the process.
[[noreturn]] void endFailedProcess(const comm::JobMonitor& monitor, const std::string& reason,
                                   int code);

}  // namespace heddle::tools
