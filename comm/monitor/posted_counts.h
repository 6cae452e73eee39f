#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace heddle::comm {

// The counts of the latest all-to-all-v calls of one rank, in memory that the ranks of one host
// share. They reveal that a sender and its receiver pass different counts, which no transport on a
// GPU reports. The rank writes without locks and without waiting. The other ranks read.
struct alignas(64) PostedCounts {
  static constexpr int kMostRanks = 64;  // larger jobs have no such memory
  static constexpr size_t kKept = 8;     // how many calls one rank may be ahead of another

  struct Call {
    std::atomic<uint64_t> stamp{0};  // 0: no call, or one that is being written
    // Indexed by the rank in the job; -1: the rank is not in the team.
    std::array<std::atomic<int64_t>, kMostRanks> sends{};
    std::array<std::atomic<int64_t>, kMostRanks> expects{};
  };
  std::array<Call, kKept> calls;
  std::atomic<size_t> next{0};  // only the writer uses it
};

// Writes the counts of `rank` and compares them with those of the team members that have written
// the same stamp. Call it before the post. Of any two ranks, the one that calls later finds the
// counts of the other, unless the other rank is already kKept calls ahead.
//   all      one entry per rank of the job
//   stamp    identifies the call; equal on all members, not 0
//   members  ranks of the team; `sends` and `expects` are parallel to it
// Throws UserError if two ranks disagree.
void compareCounts(std::span<PostedCounts> all, int rank, uint64_t stamp,
                   const std::vector<int>& members, std::span<const int64_t> sends,
                   std::span<const int64_t> expects);

}  // namespace heddle::comm
