#include "comm/monitor/posted_counts.h"

#include <optional>

#include "comm/monitor/status_memory.h"
#include "ir/base/error.h"

namespace heddle::comm {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr auto kAcquire = std::memory_order_acquire;
constexpr auto kRelease = std::memory_order_release;

// Who reads a list that is being written finds another stamp behind it.
void write(PostedCounts& mine, int ranks, uint64_t stamp, const std::vector<int>& members,
           std::span<const int64_t> sends, std::span<const int64_t> expects) {
  const size_t at = mine.next.load(kRelaxed);
  mine.next.store((at + 1) % PostedCounts::kKept, kRelaxed);
  mine.stamps[at].store(0, kRelaxed);
  PostedCounts::Lists& lists = mine.lists[at];
  for (size_t rank = 0; rank < static_cast<size_t>(ranks); ++rank) {
    lists.sends[rank].store(-1, kRelease);
    lists.expects[rank].store(-1, kRelease);
  }
  for (size_t i = 0; i < members.size(); ++i) {
    const auto rank = static_cast<size_t>(members[i]);
    lists.sends[rank].store(sends[i], kRelease);
    lists.expects[rank].store(expects[i], kRelease);
  }
  mine.stamps[at].store(stamp);  // before this rank looks at the others', in one order for all
}

struct Pair {
  int64_t sends;    // to the reader
  int64_t expects;  // from the reader
};

// What a peer has written under the stamp; nothing when it has not come there yet or is far ahead.
std::optional<Pair> read(const PostedCounts& peer, uint64_t stamp, int reader) {
  for (size_t at = 0; at < PostedCounts::kKept; ++at) {
    if (peer.stamps[at].load() != stamp) continue;
    const Pair pair{peer.lists[at].sends[static_cast<size_t>(reader)].load(kAcquire),
                    peer.lists[at].expects[static_cast<size_t>(reader)].load(kAcquire)};
    if (peer.stamps[at].load(kRelaxed) != stamp) return std::nullopt;  // written over meanwhile
    return pair;
  }
  return std::nullopt;
}

}  // namespace

void compareCounts(const StatusMemory& memory, int rank, uint64_t stamp,
                   const std::vector<int>& members, std::span<const int64_t> sends,
                   std::span<const int64_t> expects) {
  PostedCounts* const mine = memory.counts(rank);
  if (mine == nullptr) return;
  write(*mine, memory.size(), stamp, members, sends, expects);
  for (size_t i = 0; i < members.size(); ++i) {
    const int peer = members[i];
    if (peer == rank) continue;
    const std::optional<Pair> theirs = read(*memory.counts(peer), stamp, rank);
    if (!theirs) continue;
    HEDDLE_USER_CHECK(theirs->expects == sends[i],
                      "rank {} sends {} elements to rank {}, which expects {} from it", rank,
                      sends[i], peer, theirs->expects);
    HEDDLE_USER_CHECK(theirs->sends == expects[i],
                      "rank {} sends {} elements to rank {}, which expects {} from it", peer,
                      theirs->sends, rank, expects[i]);
  }
}

}  // namespace heddle::comm
