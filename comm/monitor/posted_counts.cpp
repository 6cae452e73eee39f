#include "comm/monitor/posted_counts.h"

#include "ir/base/check.h"

namespace heddle::comm {
namespace {

// Writes the stamp last, with a sequentially consistent store. If two ranks write at the same
// time, at least one of them therefore sees the counts of the other.
void write(PostedCounts& mine, size_t ranks, uint64_t stamp, const std::vector<int>& members,
           std::span<const int64_t> sends, std::span<const int64_t> expects) {
  const size_t at = mine.next.load(std::memory_order_relaxed);
  mine.next.store((at + 1) % PostedCounts::kKept, std::memory_order_relaxed);
  PostedCounts::Call& call = mine.calls[at];
  call.stamp.store(0, std::memory_order_relaxed);
  for (size_t rank = 0; rank < ranks; ++rank) {
    call.sends[rank].store(-1, std::memory_order_release);
    call.expects[rank].store(-1, std::memory_order_release);
  }
  for (size_t i = 0; i < members.size(); ++i) {
    const size_t rank = members[i];
    call.sends[rank].store(sends[i], std::memory_order_release);
    call.expects[rank].store(expects[i], std::memory_order_release);
  }
  call.stamp.store(stamp);
}

void check(int sender, int64_t sent, int receiver, int64_t expected) {
  HEDDLE_USER_CHECK(sent == expected,
                    "rank {} sends {} elements to rank {}, which expects {} from it", sender, sent,
                    receiver, expected);
}

}  // namespace

void compareCounts(std::span<PostedCounts> all, int rank, uint64_t stamp,
                   const std::vector<int>& members, std::span<const int64_t> sends,
                   std::span<const int64_t> expects) {
  write(all[rank], all.size(), stamp, members, sends, expects);
  const size_t mine = rank;
  for (size_t i = 0; i < members.size(); ++i) {
    if (members[i] == rank) continue;
    for (const PostedCounts::Call& call : all[members[i]].calls) {
      if (call.stamp.load() != stamp) continue;
      const int64_t sent = call.sends[mine].load(std::memory_order_acquire);
      const int64_t expected = call.expects[mine].load(std::memory_order_acquire);
      if (call.stamp.load(std::memory_order_relaxed) != stamp) break;  // overwritten meanwhile
      check(rank, sends[i], members[i], expected);
      check(members[i], sent, rank, expects[i]);
    }
  }
}

}  // namespace heddle::comm
