#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "comm/monitor/job_monitor.h"

namespace heddle::host {

// Connects the runs of one Executable to the job monitor. Does nothing in a job of one rank, and
// after close(). Thread-safe.
class JobLink {
 public:
  // `program` is the hash that was given to JobMonitor::addProgram(). `number` identifies the
  // Executable, is equal on all ranks, and distinguishes two Executables of one program. `world`
  // and `monitor` must live until close().
  void open(comm::World& world, comm::JobMonitor& monitor, uint64_t program, int64_t number);
  void close();

  // Returns nullptr in a job of one rank. The work of streams writes to the status, and must end
  // before close().
  comm::RankStatus* status() const { return status_; }

  // Call these around an activity. If the activity throws, do not call end(): the status then shows
  // where the rank failed.
  void begin(comm::Activity activity);
  void end(comm::Activity activity);

  // Returns a number for endRun().
  //   sizes         hash that distinguishes the plans of one program
  //   communicates  the program communicates on some rank, so all ranks count its runs
  //   chain         id of a sequence of runs that end in the order in which they began; 0: none
  int64_t beginRun(uint64_t sizes, bool communicates, int64_t chain);
  // Ends the run with the number that beginRun() returned. Throws UserError if the next rank has
  // begun different runs. Does nothing if `run` is 0, or after the job has failed, so that the
  // status still shows where the rank was.
  void endRun(int64_t run);

  // Calls JobMonitor::compareCounts for an all-to-all-v of the run that is being issued. Only one
  // run may be issued on the job monitor at this time (host/run/run_order.h).
  void compareCounts(int32_t instruction, int32_t occurrence, const std::vector<int>& members,
                     std::span<const int64_t> sends, std::span<const int64_t> expects);

  // Reports that this rank has failed, and ends its waiting calls.
  void fail(const std::string& reason) noexcept;
  bool failed() const;
  // Returns an empty string unless failed().
  std::string failure() const;

 private:
  mutable std::mutex mutex_;
  comm::World* world_ = nullptr;
  comm::JobMonitor* monitor_ = nullptr;
  comm::RankStatus* status_ = nullptr;
  uint64_t program_ = 0;
  int64_t number_ = 0;
  int64_t ended_runs_ = 0;
  int waiting_ = 0;
};

}  // namespace heddle::host
