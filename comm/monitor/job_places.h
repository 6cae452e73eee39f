#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/communicator.h"

namespace heddle::comm {

// The host and the process of each rank of a job.
struct JobPlaces {
  struct Place {
    std::string host_key;  // equal on ranks that can share memory
    std::string host;      // name of the host
    int pid = 0;
    uint64_t started = 0;  // ProcessState::started
  };
  std::vector<Place> ranks;

  // Return the ranks on the same host, or in the same process, as `rank`, in ascending order.
  std::vector<int> onHostOf(int rank) const;
  std::vector<int> inProcessOf(int rank) const;
  // Returns the lowest rank of each host, in ascending order.
  std::vector<int> leaders() const;
};

// Gathers the places of all ranks. Collective over the job. If `host_key` is empty, hostKey() is
// used.
JobPlaces findPlaces(World& world, const std::string& host_key);

}  // namespace heddle::comm
