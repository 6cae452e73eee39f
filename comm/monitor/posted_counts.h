#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

namespace heddle::comm {

class StatusMemory;

// The lists of a rank's latest all-to-all-vs, in the memory of the control job monitor: what one
// rank sends to another must be what that one expects, and no transport on a GPU notices when it is
// not. One rank writes, without locks and without waiting; the others read.
struct alignas(64) PostedCounts {
  static constexpr int kMostRanks = 64;  // of a job; larger ones have no such memory
  static constexpr size_t kKept = 8;     // all-to-all-vs a rank may be ahead of another

  struct Lists {  // by rank of the job; -1: not in the team
    std::array<std::atomic<int64_t>, kMostRanks> sends{};
    std::array<std::atomic<int64_t>, kMostRanks> expects{};
  };
  std::array<std::atomic<uint64_t>, kKept> stamps{};  // 0: none, or being written
  std::array<Lists, kKept> lists;
  std::atomic<size_t> next{0};  // the writer's
};

// Writes the lists of `rank`, which `stamp` (not 0) tells from those of its other all-to-all-vs,
// and compares them with those that team-mates of this host have written under the same stamp.
// UserError when two disagree, before this rank has posted: of any two ranks the one that comes
// later sees both, unless the other is kKept all-to-all-vs ahead already. `members`: the ranks of
// the team, to which the lists are parallel.
void compareCounts(const StatusMemory& memory, int rank, uint64_t stamp,
                   const std::vector<int>& members, std::span<const int64_t> sends,
                   std::span<const int64_t> expects);

}  // namespace heddle::comm
