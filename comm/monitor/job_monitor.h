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
#include "comm/monitor/options.h"
#include "comm/monitor/rank_activity.h"
#include "comm/monitor/rank_status.h"
#include "comm/monitor/status_memory.h"

namespace heddle::comm {

class Watcher;

// Where the ranks of a job tell each other where they are, apart from the transport: one status a
// rank in memory that survives its process, TCP between hosts. A thread of each process writes the
// heartbeat of its ranks and compares the others'. Thread-safe; the functions that write do not
// wait.
class JobMonitor : public WorldMonitor {
 public:
  // Collective over the job; `world` outlives the job monitor.
  explicit JobMonitor(World& world, JobMonitorOptions options = {});
  // This rank has left: in good order, unless it has failed, has made other runs than its peers
  // (which is told as any loss is), or an exception unwinds it, which is a failure. Who has failed
  // waits, for 2 s at most, until other processes have heard, so that each can say why it ends
  // before the first of them ends all by MPI_Abort.
  ~JobMonitor() override;
  JobMonitor(const JobMonitor&) = delete;
  JobMonitor& operator=(const JobMonitor&) = delete;

  int rank() const { return rank_; }
  int size() const { return memory_->size(); }
  RankStatus& mine() const { return memory_->status(rank_); }
  const JobPlaces& places() const { return places_; }

  // What instructions of the program are called in messages, by index.
  void addProgram(uint64_t program, const std::vector<std::string>& instructions);

  // The lists of an all-to-all-v that this rank is about to post, parallel to the ranks of the
  // team: UserError when a team-mate of this host that has come there says otherwise. `stamp` is
  // equal on all of them, and not 0.
  void compareCounts(uint64_t stamp, const std::vector<int>& members,
                     std::span<const int64_t> sends, std::span<const int64_t> expects) const {
    comm::compareCounts(*memory_, rank_, stamp, members, sends, expects);
  }

  // What all who run programs on this job monitor share, kept as long as the job monitor: what
  // `make` gives when it is asked for first. Always of one type, that of host/run/run_order.h.
  std::shared_ptr<void> shared(const std::function<std::shared_ptr<void>()>& make);

  // UserError when a peer has made other runs up to now, as far as is known here: of its host the
  // latest kKeptRuns of each rank are. For the one behind this rank alone.
  void compareRuns() const;

  // What the runs of this rank say of themselves.
  RankActivity& activity() const { return *activity_; }
  // This rank will begin no more runs, and has waited for those it began: who begins another that
  // communicates waits for it in vain.
  void endRuns() { activity_->endRuns(); }
  // This rank cannot go on. Of no effect when it only follows another rank's failure.
  void fail(const std::string& reason) noexcept override;
  // Some rank of the job is lost, this one included.
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  // failed(): what is known of it.
  JobFailure failure() const;

  // This rank has said why it ends.
  void haveSpoken() { mine().spoken.store(true, std::memory_order_release); }
  // No other rank has more to say: it has said why it ends, has left, or is lost or gone; and on
  // another host, from where no more is heard, it knows of an end.
  bool othersHaveSpoken() const;

  // A line a rank: where it is now.
  std::string positions() const;
  RankSnapshot entry(int rank) const { return read(memory_->status(rank), rank); }

 private:
  friend class Watcher;
  // The first lost rank, if there is one.
  int firstLost() const;
  std::string placeOf(const RankSnapshot& entry) const;
  std::string instructionText(uint64_t program, int32_t instruction) const;
  // Keeps the failure if it is the first; true when it is.
  bool keep(JobFailure failure);
  std::string describeLost(int rank) const;
  void tellOwner();
  bool isOneOfProcesses() const;  // of the job
  void say() const;
  std::string differingFrom(int other, int& blamed) const;
  void compareLastRuns();
  void awaitOthers() const;

  World& world_;
  int rank_;
  JobMonitorOptions options_;
  int exceptions_;  // under way on the thread that made the job monitor
  JobPlaces places_;
  std::shared_ptr<StatusMemory> memory_;
  std::unique_ptr<RankActivity> activity_;
  mutable std::mutex mutex_;
  std::map<uint64_t, std::vector<std::string>> programs_;
  std::shared_ptr<void> shared_;
  JobFailure failure_;
  std::atomic<bool> failed_{false};
  std::atomic<bool> owner_told_{false};
  std::shared_ptr<Watcher> watcher_;
};

// The monitor that the World owns. The first call creates it, with its options, together with the
// other ranks; the World destroys it. Thread-safe.
JobMonitor& jobMonitorOf(World& world, const JobMonitorOptions& options);

}  // namespace heddle::comm
