#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/monitor/posted_counts.h"
#include "comm/monitor/rank_status.h"

namespace heddle::comm {

class Watcher;

// Who is where: the ranks of a job by host and process.
struct JobPlaces {
  struct Place {
    std::string host_key;
    std::string host;
    int pid = 0;
    uint64_t started = 0;
  };
  std::vector<Place> ranks;

  // Ranks of the host of `rank`, of its process; ascending.
  std::vector<int> onHostOf(int rank) const;
  std::vector<int> inProcessOf(int rank) const;
  // The lowest rank of each host, ascending.
  std::vector<int> leaders() const;
};

// Collective. `host_key`: empty for that of this machine.
JobPlaces findPlaces(World& world, const std::string& host_key);

// A status and the latest counts of each rank of the job, shared by the processes of one host: a
// mapped file whose name is gone once all have mapped it, or plain memory where one process holds
// them all.
class StatusMemory {
 public:
  ~StatusMemory();
  StatusMemory(const StatusMemory&) = delete;
  StatusMemory& operator=(const StatusMemory&) = delete;

  // Collective over the job. UserError on all ranks when one cannot map its host's file.
  static std::shared_ptr<StatusMemory> share(World& world, const JobPlaces& places);

  int size() const { return size_; }
  RankStatus& status(int rank) const { return statuses_[rank]; }
  // nullptr in a job of more than PostedCounts::kMostRanks. Nothing comes here from other hosts.
  PostedCounts* counts(int rank) const { return counts_ == nullptr ? nullptr : counts_ + rank; }

  // The thread that looks at it in this process.
  std::mutex watching;
  std::weak_ptr<Watcher> watcher;

 private:
  StatusMemory(int size, void* memory, size_t mapped_bytes);

  int size_;
  RankStatus* statuses_;
  PostedCounts* counts_;  // behind the slots
  size_t mapped_bytes_;   // 0: plain memory

  static std::shared_ptr<StatusMemory> makePlain(int size);
  static std::shared_ptr<StatusMemory> map(int size, const std::string& path, bool fresh);
};

}  // namespace heddle::comm
