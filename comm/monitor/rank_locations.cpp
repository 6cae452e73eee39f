#include "comm/monitor/rank_locations.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <span>
#include <sstream>

#include "comm/process/process_info.h"
#include "ir/base/check.h"

namespace heddle::comm {
namespace {

std::vector<int> ranksLike(const RankLocations& locations, int rank, bool same_process) {
  const RankLocations::Location& mine = locations[rank];
  std::vector<int> found;
  for (size_t i = 0; i < locations.ranks.size(); ++i) {
    const RankLocations::Location& other = locations.ranks[i];
    if (other.machine_key != mine.machine_key || (same_process && other.pid != mine.pid)) continue;
    found.push_back(static_cast<int>(i));
  }
  return found;
}

}  // namespace

std::vector<int> RankLocations::onMachineOf(int rank) const {
  return ranksLike(*this, rank, false);
}
std::vector<int> RankLocations::inProcessOf(int rank) const { return ranksLike(*this, rank, true); }

std::vector<int> RankLocations::leaders() const {
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

RankLocations findLocations(World& world, const std::string& machine_key) {
  const int pid = static_cast<int>(getpid());
  const std::string mine =
      fmt::format("{}\n{}\n{} {}", machine_key.empty() ? machineKey() : machine_key, machineName(),
                  pid, processState(pid).started);
  RankLocations locations;
  for (const std::string& text : world.exchange(mine)) {
    RankLocations::Location& location = locations.ranks.emplace_back();
    std::istringstream in(text);
    std::getline(in, location.machine_key);
    std::getline(in, location.machine);
    in >> location.pid >> location.started;
  }
  return locations;
}

}  // namespace heddle::comm
