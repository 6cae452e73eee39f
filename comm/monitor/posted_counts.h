#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace heddle::comm {

// The counts of a rank's latest all-to-all-v calls, in memory that the ranks of one host share. No
// transport on a GPU reports that a rank sends another number of elements than the receiver
// expects. One rank writes, without locks and without waiting; the other ranks read.
struct alignas(64) PostedCounts {
  static constexpr int kMostRanks = 64;  // larger jobs have no such memory
  static constexpr size_t kKept = 8;     // calls that one rank may be ahead of another

  struct Call {
    std::atomic<uint64_t> stamp{0};  // 0: no call, or one that is being written
    // By rank of the job; -1: not in the team.
    std::array<std::atomic<int64_t>, kMostRanks> sends{};
    std::array<std::atomic<int64_t>, kMostRanks> expects{};
  };
  std::array<Call, kKept> calls;
  std::atomic<size_t> next{0};  // only the writer uses it
};

// Writes the counts of `rank` and compares them with those of the team members that have written
// the same stamp. Call it before the post: of any two ranks, the later one sees both lists, unless
// the earlier one is kKept calls ahead.
//   all      one entry per rank of the job
//   stamp    identifies the call; equal on all members, not 0
//   members  ranks of the team; `sends` and `expects` are parallel to it
// Throws UserError if two ranks disagree.
void compareCounts(std::span<PostedCounts> all, int rank, uint64_t stamp,
                   const std::vector<int>& members, std::span<const int64_t> sends,
                   std::span<const int64_t> expects);

}  // namespace heddle::comm
