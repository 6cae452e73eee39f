#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "comm/monitor/job_monitor.h"

namespace heddle::host {

// Of an Executable's runs, and of the job's: 0 where it communicates on no rank.
struct RunNumber {
  int64_t own = 0;
  int64_t of_job = 0;
};

// How the runs of one Executable tell the job where they are and that they have failed. Empty in a
// job of one rank. Thread-safe.
class JobLink {
 public:
  // `program`: its hash, as given to JobMonitor::addProgram. `number`: of the Executable, equal
  // on all ranks, so that the runs of two with one program are told apart. Until close() world and
  // job monitor are borrowed.
  void open(comm::World& world, comm::JobMonitor& monitor, uint64_t program, int64_t number);
  void close();

  // nullptr in a job of one rank. Work in flight writes to it, and is over before close().
  comm::RankStatus* status() const { return status_; }

  // Around what may take as long as a compiler; on an exception the rank stays there.
  void beginCompiling();
  void endCompiling();
  // `communicates`: the program, on any rank. `sizes`: hash of what tells the plans of one program
  // apart. `chain`: as for comm::RankActivity::beginRun().
  RunNumber beginRun(uint64_t sizes, bool communicates, int64_t chain);
  // UserError when the job's ranks turn out to have made different runs.
  void endRun(const RunNumber& run);
  // Around the comparison of what ranks will post in the run that has begun; on an exception the
  // rank stays there.
  void beginAgreeing();
  void endAgreeing();
  // JobMonitor::compareCounts for an all-to-all-v of the run, the only one that is being issued
  // on the job monitor (host/run/run_order.h).
  void compareCounts(int32_t instruction, int32_t occurrence, const std::vector<int>& members,
                     std::span<const int64_t> sends, std::span<const int64_t> expects);
  // Around the host's wait for a device that does not say where it is.
  void beginWaiting();
  void endWaiting();

  // Peers must not wait for a rank that has failed.
  void fail(const std::string& reason) noexcept;
  bool failed() const;
  // What has failed; empty when nothing has.
  std::string failure() const;

 private:
  void compareRuns(int64_t number) const;

  mutable std::mutex mutex_;
  comm::World* world_ = nullptr;
  comm::JobMonitor* monitor_ = nullptr;
  comm::RankStatus* status_ = nullptr;
  uint64_t program_ = 0;
  int64_t number_ = 0;
  int64_t runs_ = 0;
  int64_t over_ = 0;  // of those that do not communicate: the latest that is over
  int waiting_ = 0;
};

}  // namespace heddle::host
