#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "comm/monitor/job_monitor.h"
#include "ir/base/error.h"

namespace heddle::host {

// Call this when `error` ends the work of this rank. If the monitor knows that the job has failed,
// and this rank has not reported that failure itself (JobMonitor::fail()), throws UserError with
// the code of the job's failure and the text of `error`. Exception: if `error` has the code
// RankLost and its text does not contain the text of the job's failure, the thrown error has the
// text of the job's failure. Without such a failure, the function does nothing.
void throwIfOtherRankFailed(const comm::JobMonitor& monitor, const UserError& error);
// Reports that this rank has failed, so that the other ranks stop waiting for it. Waiting calls of
// this rank end too. Does nothing if `monitor` is nullptr, which is usual in a job of one rank.
void failJob(comm::JobMonitor* monitor, comm::World* world, const char* reason) noexcept;
// Reports the exception that is being handled as the failure of this rank (failJob()), and throws
// it again. Call this function in a catch block. An exception that is no std::exception is not
// reported. For a UserError, the function first calls throwIfOtherRankFailed(), if there is a
// monitor. If this call throws, nothing is reported.
[[noreturn]] void failJobAndRethrow(comm::JobMonitor* monitor, comm::World* world);

// Reports the runs of one Executable to the job monitor (comm/monitor/job_monitor.h). Before open()
// and after close(), all reports do nothing. In a job of one rank, open() is called only if the
// caller of the Executable has passed a job monitor (ExecutableParts::monitor). Thread-safe.
class JobLink {
 public:
  // From now on, reports reach `monitor`. `world` and `monitor` must exist until close().
  // - `program`: the hash that was given to JobMonitor::addProgram().
  // - `number`: the number of the Executable on this job monitor. It must be equal on all ranks,
  //   and must differ between two Executables of one program.
  void open(comm::World& world, comm::JobMonitor& monitor, uint64_t program, int64_t number);
  void close();

  // Returns the status of this rank, which the other ranks can read. Returns nullptr before open().
  // Work on streams also writes to the status. This work must end before close().
  comm::RankStatus* status() const { return status_; }

  // begin() and end() report the start and the end of an activity of this rank, such as compiling
  // or waiting. If the activity throws, do not call end(): the status then shows the activity in
  // which the rank failed.
  void begin(comm::Activity activity);
  void end(comm::Activity activity);

  // Reports the start of a run. Returns the number of the run for endRun(), or 0 if the reports do
  // nothing.
  //   sizes         hash that distinguishes the plans of one program
  //   communicates  true: the program communicates on some rank, so all ranks count its runs
  //   chain         id of a sequence of runs that end in the order in which they began; 0: the run
  //                 belongs to no such sequence. Not read if `communicates` is false, because all
  //                 these runs of the Executable form one sequence
  int64_t beginRun(uint64_t sizes, bool communicates, int64_t chain);
  // Reports the end of the run with the number `run`, which beginRun() returned. Does nothing if
  // `run` is 0. Also does nothing if the job has failed, so that the status still shows the last
  // instruction. Some calls compare the runs of this rank with those of the next rank
  // (JobMonitor::compareRuns()), and throw UserError if they differ.
  void endRun(int64_t run);

  // Calls JobMonitor::compareCounts() for an all-to-all-v of the run that is being issued.
  // Meanwhile, no other run may be issued on the same job monitor (host/run/run_order.h).
  void compareCounts(int32_t instruction, int32_t occurrence, const std::vector<int>& members,
                     std::span<const int64_t> sends, std::span<const int64_t> expects);

  // Reports to the other ranks that this rank has failed. Waiting calls of this rank end too.
  void fail(const std::string& reason) noexcept;
  // Returns whether any rank of the job has failed.
  bool failed() const;
  // Returns the failure of the job, or an empty string if failed() is false.
  std::string failure() const;
  // Returns the code of the failure of the job, or RankLost if JobLink has no monitor (before
  // open(), after close()). Requires failed() if there is a monitor.
  ErrorCode failureCode() const;
  // Calls the function of the same name above with the job monitor, if there is one.
  void throwIfOtherRankFailed(const UserError& error) const;

 private:
  // Returns whether open() was never called. In this case, begin(), end(), beginRun() and endRun()
  // take no lock.
  bool isLocal() const { return !opened_.load(std::memory_order_acquire); }

  std::atomic<bool> opened_{false};
  mutable std::mutex mutex_;
  comm::World* world_ = nullptr;
  comm::JobMonitor* monitor_ = nullptr;
  comm::RankStatus* status_ = nullptr;
  uint64_t program_ = 0;
  int64_t number_ = 0;
  int64_t ended_runs_ = 0;
  int waiting_ = 0;  // number of activities of the kind Waiting that have begun and not ended
};

}  // namespace heddle::host
