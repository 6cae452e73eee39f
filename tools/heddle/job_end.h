#pragma once

#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "comm/monitor/job_monitor.h"
#include "comm/rank_task.h"

// Functions that end the ranks of a job after a failure.
namespace heddle::tools {

// Collects the errors of ranks that are threads of this process, and the failure that their job
// monitors (comm/monitor) report.
class RankErrors {
 public:
  // Stores an error of `rank`. `monitor` is nullptr if the rank failed before it created its
  // monitor.
  void keep(std::exception_ptr error, int rank, const comm::JobMonitor* monitor);
  // If an error was stored, throws the error that caused the others. In a job of several ranks, the
  // message names a rank. If a job monitor has noticed the failure, the message also has a line
  // about each rank.
  void rethrow(int ranks);

 private:
  std::mutex mutex_;
  int first_ = -1;
  std::map<int, std::exception_ptr> errors_;
  std::optional<comm::JobFailure> failure_;
};

// Installs a handler for SIGTERM. If `is_polled` is true, the handler stores the signal, and
// comm::StartTimeout polls endSignal(). If `is_polled` is false, the handler prints a message and
// ends the process. While a WatcherPoll exists, the handler stores the signal in both cases, and
// the job monitor polls endSignal(). After the WatcherPoll, the handler itself ends the process.
void catchEndSignal(bool is_polled);
// Sets the current task of this process, for the message that the signal handler prints. Does
// nothing after the handler has stored a signal, because the message must name the task during
// which the signal came. (The signal can also make a compiler fail, so that an exception ends this
// task before the message is printed.)
void setProcessTask(comm::RankTask task);
// Sets the current task of this process. The destructor sets the previous task again.
class ProcessTask {
 public:
  explicit ProcessTask(comm::RankTask task);
  ~ProcessTask();
  ProcessTask(const ProcessTask&) = delete;
  ProcessTask& operator=(const ProcessTask&) = delete;

 private:
  comm::RankTask before_;
};
// Prints `text`, the reason why the job has not started. Waits half a second, so that other
// processes can print too, and ends this process. `signal` is the signal that told this process to
// end; 0: none. A thread of comm::StartTimeout calls this function.
[[noreturn]] void endBeforeStart(const std::string& text, int signal);
// Declares that the error that ends the job has been printed. When the first process has exited,
// mpirun sends SIGTERM to the other processes. They then end without a further message.
void setErrorReported();
// Returns the signal that the handler has stored, or 0. JobMonitorOptions::end_signal points to the
// result.
const std::atomic<int>& endSignal();
// While this object exists, the signal handler only stores the signal, and the job monitor of this
// process polls endSignal(). The functions that end the process then also wait until the monitor
// reports that the other ranks have printed. The monitor must outlive this object. The destructor
// does not return if another thread is ending the process. If a stored signal has not been handled
// yet, the destructor itself ends the process.
class WatcherPoll {
 public:
  // `deadline` is JobMonitorOptions::deadline, in seconds. If all ranks are threads of this
  // process, it is 0, because there are no other processes to wait for.
  WatcherPoll(comm::JobMonitor& monitor, double deadline);
  ~WatcherPoll();
  WatcherPoll(const WatcherPoll&) = delete;
  WatcherPoll& operator=(const WatcherPoll&) = delete;
};

// The functions below print a message and end the process. Before the process exits, they end the
// compilers that it has started. In an mpirun job, they then wait until the other ranks have
// printed, but at most for a fifth of the deadline and at most two seconds. The reason: as soon as
// one process exits, mpirun kills all other processes.

// Prints the failure and starts a thread that ends the process. Prints nothing if `rank` itself is
// lost and has not reported an error (JobFailure::told is false). JobMonitorOptions::on_failure
// calls this function.
void endProcess(int rank, const comm::JobFailure& failure);
// Prints what the ranks were doing when a signal told this process to end, and ends the process.
// All ranks must be threads of this process. JobMonitorOptions::on_failure calls this function.
void endBySignal(int ranks, const comm::JobFailure& failure);
// Prints `reason`, the error of this rank, and ends the process. If another thread is already
// ending the process, waits without printing.
[[noreturn]] void endFailedProcess(const comm::JobMonitor& monitor, const std::string& reason,
                                   int code);

}  // namespace heddle::tools
