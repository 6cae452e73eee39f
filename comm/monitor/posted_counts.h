#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace heddle::comm {

// The counts of the latest all-to-all-v calls of one rank, in memory that the ranks of one machine
// share. They reveal a sender and a receiver that pass different counts, which NCCL does not
// report. The rank to which the object belongs writes the counts without locks and without
// waiting. The other ranks read them.
struct alignas(64) PostedCounts {
  static constexpr int kMostRanks = 64;  // jobs with more ranks have no PostedCounts
  static constexpr size_t kKept = 8;     // number of latest calls that are kept

  struct Call {
    std::atomic<uint64_t> stamp{0};  // identifies the call; 0: the entry is empty or incomplete
    // By rank r of the job: the number of elements that this rank sends to r, and the number that
    // it expects from r. -1: r is not in the team.
    std::array<std::atomic<int64_t>, kMostRanks> sends{};
    std::array<std::atomic<int64_t>, kMostRanks> expects{};
  };
  std::array<Call, kKept> calls;
  std::atomic<size_t> next{0};  // next entry to write; only the writer uses it
};

// Writes the counts of `rank`, and compares them with the counts of the team members that have
// written the same stamp. Call this function before the all-to-all-v is posted. Of any two ranks,
// the rank that calls later compares its counts with the counts of the other rank. If the other
// rank has made kKept more calls meanwhile, no comparison takes place.
//   all      one entry per rank of the job
//   stamp    identifies the call; equal on all members, not 0
//   members  ranks of the team; `sends` and `expects` are parallel to it
// Throws UserError if two ranks disagree.
void compareCounts(std::span<PostedCounts> all, int rank, uint64_t stamp,
                   const std::vector<int>& members, std::span<const int64_t> sends,
                   std::span<const int64_t> expects);

}  // namespace heddle::comm
