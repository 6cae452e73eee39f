#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/communicator.h"

namespace heddle::comm {

// The host and the process of each rank of a job.
struct JobPlaces {
  struct Place {
    std::string host_key;  // equal for ranks that can share memory
    std::string host;      // name of the host
    int pid = 0;
    uint64_t started = 0;  // ProcessState::started
  };
  std::vector<Place> ranks;

  // Return the ranks on the host of `rank`, and the ranks in the process of `rank`, in ascending
  // order.
  std::vector<int> onHostOf(int rank) const;
  std::vector<int> inProcessOf(int rank) const;
  // Returns the lowest rank of each host, in ascending order.
  std::vector<int> leaders() const;
};

// Gathers the places of all ranks. Collective over the job. Ranks that pass equal texts as
// `host_key` count as ranks of one host. Empty: hostKey() (comm/process/process_info.h) is used.
JobPlaces findPlaces(World& world, const std::string& host_key);

}  // namespace heddle::comm
