#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/monitor/posted_counts.h"
#include "comm/monitor/rank_status.h"

namespace heddle::comm {

class BoardWatcher;

// Who is where: the ranks of a job by host and process.
struct BoardPlaces {
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
BoardPlaces findPlaces(World& world, const std::string& host_key);

// A slot and the latest counts of each rank of the job, shared by the processes of one host: a
// mapped file whose name is gone once all have mapped it, or plain memory where one process holds
// them all.
class BoardMemory {
 public:
  ~BoardMemory();
  BoardMemory(const BoardMemory&) = delete;
  BoardMemory& operator=(const BoardMemory&) = delete;

  // Collective over the job. UserError on all ranks when one cannot map its host's file.
  static std::shared_ptr<BoardMemory> share(World& world, const BoardPlaces& places);

  int size() const { return size_; }
  BoardSlot& slot(int rank) const { return slots_[rank]; }
  // nullptr in a job of more than BoardCounts::kMostRanks. Nothing comes here from other hosts.
  BoardCounts* counts(int rank) const { return counts_ == nullptr ? nullptr : counts_ + rank; }

  // The thread that looks at it in this process.
  std::mutex watching;
  std::weak_ptr<BoardWatcher> watcher;

 private:
  BoardMemory(int size, void* memory, size_t mapped_bytes);

  int size_;
  BoardSlot* slots_;
  BoardCounts* counts_;  // behind the slots
  size_t mapped_bytes_;  // 0: plain memory

  static std::shared_ptr<BoardMemory> makePlain(int size);
  static std::shared_ptr<BoardMemory> map(int size, const std::string& path, bool fresh);
};

}  // namespace heddle::comm
