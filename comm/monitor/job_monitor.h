#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/monitor/options.h"
#include "comm/monitor/posted_counts.h"
#include "comm/monitor/rank_activity.h"
#include "comm/monitor/rank_locations.h"
#include "comm/monitor/rank_status.h"

namespace heddle::comm {

class Watcher;

// Publishes the status of one rank (RankStatus) and detects failures of the other ranks. After its
// construction, the monitor uses neither MPI nor NCCL. The ranks of a machine share the statuses in
// memory that continues to exist if a process is killed. TCP carries the statuses between machines.
// comm/monitor/detection.h lists the failures. Thread-safe. Only the constructor and the destructor
// wait for other ranks.
class JobMonitor : public WorldMonitor, private WorldObserver {
 public:
  // Creates the monitor of this rank. Collective over the job. `world` must outlive the monitor.
  explicit JobMonitor(World& world, JobMonitorOptions options = {});
  // Leaves the job.
  // - If an exception unwinds the stack to this destructor, the rank leaves as failed, unless
  //   another rank failed first.
  // - Otherwise the destructor compares the latest runs of all ranks. If two ranks executed
  //   different runs, the job fails, even if the blamed rank has already left.
  // - In a job of several processes, a rank that leaves as failed waits, at most 2 s, until the
  //   other ranks have seen the failure. Without this wait, its program could call MPI_Abort, which
  //   would end the other processes before they report the reason.
  ~JobMonitor() override;
  JobMonitor(const JobMonitor&) = delete;
  JobMonitor& operator=(const JobMonitor&) = delete;

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(locations_.ranks.size()); }
  // mine() and activity() return the status and the activities of this rank. entry() returns a
  // snapshot of the status of any rank.
  RankStatus& mine() const { return statuses_[rank_]; }
  RankSnapshot entry(int rank) const { return read(statuses_[rank], rank); }
  RankActivity& activity() const { return *activity_; }

  // Stores the text of each instruction of a program, for messages. `program` is the hash of the
  // program (RankStatus::program). `instructions` is indexed by the number of the instruction.
  void addProgram(uint64_t program, const std::vector<std::string>& instructions);

  // Compares the counts that this rank passes to an all-to-all-v with the counts of the other team
  // members on this machine. Call this before this rank posts the all-to-all-v. Throws UserError if
  // the counts disagree. comm/monitor/posted_counts.h describes the parameters. Does nothing in a
  // job of more than PostedCounts::kMostRanks ranks.
  void compareCounts(uint64_t stamp, const std::vector<int>& members,
                     std::span<const int64_t> sends, std::span<const int64_t> expects) const;

  // Returns an object that all Executables on this monitor share: a RunOrder
  // (host/run/run_order.h). The first call creates the object with `make`, and the monitor keeps
  // it. All callers must pass a `make` for the same type.
  std::shared_ptr<void> shared(const std::function<std::shared_ptr<void>()>& make);

  // Compares the latest kKeptRuns runs of this rank (RankStatus::run_hashes) with the runs of the
  // next higher rank. The highest rank compares its runs with the runs of rank 0. If the two ranks
  // executed different runs, the state of the rank to blame becomes Lost, and the function throws
  // UserError.
  void compareRuns() const;

  // Reports that this rank cannot continue: its state becomes Failed. If another rank failed first,
  // the state becomes Left instead, and `reason` is not reported.
  void fail(const std::string& reason) noexcept override;
  // Returns whether this rank knows of a failure of the job.
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  // Returns the failure of the job. Requires failed().
  JobFailure failure() const;
  // Returns the failure of the job, also if this monitor does not know of it yet but the status of
  // a rank shows it. Returns nothing if there is no failure.
  std::optional<JobFailure> findFailure() const;

  // Declares that this rank has printed why it ends.
  void setReported() { mine().reported.store(true); }
  // Returns whether this process may end now. An early end could make MPI end the other processes
  // before they print their messages. This process may end if every other rank satisfies one of
  // these conditions:
  // - The rank is on this machine, and has called setReported() or destroyed its monitor.
  // - The state of the rank is Gone, Lost or Stuck, or its process on this machine has ended.
  // - The rank is on another machine and has failed or left.
  bool othersHaveReported() const;

  // Returns one line per rank: its process, its state and its instruction.
  std::string positions() const { return positions(readAll(statuses())); }

 private:
  friend class Watcher;
  using RankSnapshots = std::vector<RankSnapshot>;  // snapshots of all ranks, at one time

  void beginWait(bool of_job) override;
  void endWait() override;
  void setTask(RankTask task) override;
  std::span<RankStatus> statuses() const { return {statuses_.get(), locations_.ranks.size()}; }
  int firstLost() const;  // the lowest rank for which isLost() is true; -1: none
  void reportFailure(const RankSnapshots& ranks, int rank, int signal);
  bool setFailure(JobFailure failure);
  void notifyOwner();
  void print() const;
  JobFailure describeFailure(const RankSnapshots& ranks, int rank) const;
  std::string describeLost(const RankSnapshots& ranks, int rank, std::string_view reason) const;
  std::string positions(const RankSnapshots& ranks) const;
  std::string instructionText(uint64_t program, int32_t instruction) const;
  std::string positionOf(const RankSnapshots& ranks, const RankSnapshot& entry) const;
  std::string positionInRuns(const RankSnapshot& entry) const;
  bool isOneOfProcesses() const;
  void checkTimeLimits();
  void compareLastRuns();
  void awaitOthers() const;

  World& world_;
  int rank_;
  JobMonitorOptions options_;
  int exceptions_;  // number of uncaught exceptions when the monitor was created
  RankLocations locations_;
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

// Returns the monitor that `world` owns and destroys. The first call creates the monitor with
// `options` and waits until the other ranks create their monitors. Later calls ignore `options`.
// Thread-safe.
JobMonitor& jobMonitorOf(World& world, const JobMonitorOptions& options);

}  // namespace heddle::comm
