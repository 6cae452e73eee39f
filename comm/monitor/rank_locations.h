#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/communicator.h"

namespace heddle::comm {

// The machine and the process of each rank of a job.
struct RankLocations {
  struct Location {
    std::string machine_key;  // ranks with equal keys count as ranks of one machine
    std::string machine;      // name of the machine
    int pid = 0;
    uint64_t started = 0;  // start time of the process: ProcessState::started
    std::string text() const { return "pid " + std::to_string(pid) + " on " + machine; }
  };
  std::vector<Location> ranks;
  const Location& operator[](int rank) const { return ranks[static_cast<size_t>(rank)]; }

  // onMachineOf() returns the ranks on the machine of `rank`, and inProcessOf() the ranks in the
  // process of `rank`. Both include `rank` and are in ascending order.
  std::vector<int> onMachineOf(int rank) const;
  std::vector<int> inProcessOf(int rank) const;
  // Returns the lowest rank of each machine, in ascending order.
  std::vector<int> leaders() const;
};

// Returns a text such as "rank 3" or "ranks 0, 2 and 5". If there are more than nine ranks, the
// text names eight of them and ends with "and more". No ranks: "other ranks".
std::string nameRanks(const std::vector<int>& ranks);

// Gathers the locations of all ranks. Collective over the job. Ranks that pass equal texts as
// `machine_key` count as ranks of one machine, and must be able to share memory. If the text is
// empty, machineKey() (comm/process/process_info.h) replaces it.
RankLocations findLocations(World& world, const std::string& machine_key);

}  // namespace heddle::comm
