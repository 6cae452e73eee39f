#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/monitor/job_places.h"
#include "comm/monitor/options.h"
#include "comm/monitor/posted_counts.h"
#include "comm/monitor/rank_activity.h"
#include "comm/monitor/rank_status.h"

namespace heddle::comm {

class Watcher;

// Publishes the status of one rank and detects failures of the other ranks, independently of MPI
// and NCCL. Statuses are in memory that survives a killed process; TCP carries them between hosts.
// comm/monitor/detection.h lists the failures. Thread-safe; functions that write do not wait.
class JobMonitor : public WorldMonitor {
 public:
  // Collective over the job. `world` must outlive the monitor.
  explicit JobMonitor(World& world, JobMonitorOptions options = {});
  // Leaves the job. If an exception unwinds this rank, or its runs differ from those of another
  // rank, it has failed. A failed rank waits until the other processes have seen the failure, at
  // most 2 s. Without this wait, the first process that calls MPI_Abort would end the others before
  // they report the reason.
  ~JobMonitor() override;
  JobMonitor(const JobMonitor&) = delete;
  JobMonitor& operator=(const JobMonitor&) = delete;

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(places_.ranks.size()); }
  RankStatus& mine() const { return statuses_[static_cast<size_t>(rank_)]; }
  RankSnapshot entry(int rank) const { return read(statuses_[static_cast<size_t>(rank)], rank); }
  RankActivity& activity() const { return *activity_; }

  // Names the instructions of a program in messages, by index.
  void addProgram(uint64_t program, const std::vector<std::string>& instructions);

  // Compares the counts of an all-to-all-v that this rank is about to post, as in posted_counts.h.
  // Does nothing in a job of more than PostedCounts::kMostRanks.
  void compareCounts(uint64_t stamp, const std::vector<int>& members,
                     std::span<const int64_t> sends, std::span<const int64_t> expects) const;

  // Returns an object that all users of this monitor share and that lives as long as the monitor.
  // The first call creates it. All calls must use one type (host/run/run_order.h).
  std::shared_ptr<void> shared(const std::function<std::shared_ptr<void>()>& make);

  // Throws UserError if the next rank made different runs. Statuses keep the latest kKeptRuns.
  void compareRuns() const;

  // Reports that this rank cannot continue. Has no effect if another rank failed first.
  void fail(const std::string& reason) noexcept override;
  // Returns whether any rank has failed or is lost, as far as this rank knows.
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  // Valid if failed().
  JobFailure failure() const;

  // Declares that this rank has printed why it ends.
  void setReported() { mine().reported.store(true); }
  // Returns whether no other rank has more to print: each has printed, has left, or is lost or
  // gone. A rank of another host only has to know of the failure.
  bool othersHaveReported() const;

  // Returns one line per rank: its process, its state and its instruction.
  std::string positions() const;

 private:
  friend class Watcher;
  std::span<RankStatus> statuses() const { return {statuses_.get(), places_.ranks.size()}; }
  int firstLost() const;  // -1: none
  void reportFailure(int rank, int signal);
  bool setFailure(JobFailure failure);
  void notifyOwner();
  void print() const;
  JobFailure describeFailure(int rank) const;
  std::string describeLost(int rank, std::string_view reason) const;
  std::string instructionText(uint64_t program, int32_t instruction) const;
  std::string positionOf(const RankSnapshot& entry) const;
  bool isOneOfProcesses() const;
  void compareLastRuns();
  void awaitOthers() const;

  World& world_;
  int rank_;
  JobMonitorOptions options_;
  int exceptions_;  // in flight when the monitor was created
  JobPlaces places_;
  std::shared_ptr<RankStatus[]> statuses_;
  std::shared_ptr<PostedCounts[]> counts_;  // nullptr in a large job
  std::unique_ptr<RankActivity> activity_;
  mutable std::mutex mutex_;
  std::map<uint64_t, std::vector<std::string>> programs_;
  std::shared_ptr<void> shared_;
  JobFailure failure_;
  std::atomic<bool> failed_{false};
  std::atomic<bool> owner_notified_{false};
  std::shared_ptr<Watcher> watcher_;
};

// Returns the monitor that the World owns. The first call creates it, with its options, together
// with the other ranks; the World destroys it. Thread-safe.
JobMonitor& jobMonitorOf(World& world, const JobMonitorOptions& options);

}  // namespace heddle::comm
