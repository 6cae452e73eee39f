#include "comm/monitor/job_places.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <span>
#include <sstream>

#include "comm/process/process_info.h"
#include "ir/base/check.h"

namespace heddle::comm {
namespace {

std::vector<int> ranksLike(const JobPlaces& places, int rank, bool same_process) {
  const JobPlaces::Place& mine = places[rank];
  std::vector<int> found;
  for (size_t i = 0; i < places.ranks.size(); ++i) {
    const JobPlaces::Place& other = places.ranks[i];
    if (other.machine_key != mine.machine_key || (same_process && other.pid != mine.pid)) continue;
    found.push_back(static_cast<int>(i));
  }
  return found;
}

}  // namespace

std::vector<int> JobPlaces::onMachineOf(int rank) const { return ranksLike(*this, rank, false); }
std::vector<int> JobPlaces::inProcessOf(int rank) const { return ranksLike(*this, rank, true); }

std::vector<int> JobPlaces::leaders() const {
  std::vector<int> found;
  for (int rank = 0; rank < static_cast<int>(ranks.size()); ++rank) {
    if (onMachineOf(rank).front() == rank) found.push_back(rank);
  }
  return found;
}

std::string nameRanks(const std::vector<int>& ranks) {
  constexpr size_t kMost = 8;
  if (ranks.empty()) return "other ranks";
  if (ranks.size() == 1) return fmt::format("rank {}", ranks[0]);
  const std::span named(ranks.data(), std::min(ranks.size() - 1, kMost));
  return fmt::format("ranks {} and {}", fmt::join(named, ", "),
                     ranks.size() - 1 > kMost ? "more" : std::to_string(ranks.back()));
}

JobPlaces findPlaces(World& world, const std::string& machine_key) {
  const int pid = static_cast<int>(getpid());
  const std::string mine =
      fmt::format("{}\n{}\n{} {}", machine_key.empty() ? machineKey() : machine_key, machineName(),
                  pid, processState(pid).started);
  JobPlaces places;
  for (const std::string& text : world.exchange(mine)) {
    JobPlaces::Place& place = places.ranks.emplace_back();
    std::istringstream in(text);
    std::getline(in, place.machine_key);
    std::getline(in, place.machine);
    in >> place.pid >> place.started;
  }
  return places;
}

}  // namespace heddle::comm
