#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "comm/communicator.h"

// What the transports share: how an operation is checked, named in messages and cut into parts.
namespace heddle::comm {

// What `rank` of `size` may post. Throws UserError for a peer or root outside the communicator, a
// negative or overflowing count, a list of counts of another length, a null buffer that this rank
// needs, an all-to-all in place, or an average of integers.
void checkGroup(std::span<const Operation> group, int rank, int size);

bool isPointToPoint(CollectiveKind kind);
bool reduces(CollectiveKind kind);
// Whether a transport may move it with copy engines alone (Carrier::copy channel).
bool mayCopy(CollectiveKind kind);
bool isRooted(CollectiveKind kind);  // has a root: reduce, broadcast, gather, scatter

// Whether a rank reads a send buffer, or writes a receive buffer.
bool hasSend(CollectiveKind kind, bool is_root);
bool hasRecv(CollectiveKind kind, bool is_root);

// Elements of the buffers of a rank that has them, of `size` ranks.
int64_t sentBy(const Operation& operation, int size);
int64_t receivedBy(const Operation& operation, int size);

// Returns a copy of the operation. The lists of an all-to-all-v are copied into `storage`, which
// must outlive the copy.
Operation withOwnCounts(const Operation& operation, std::vector<int64_t>& storage);

// Sum of the first `rank` counts: where that rank's part begins.
int64_t offsetOf(std::span<const int64_t> counts, int rank);

// `allreduce(sum) of 8 f32`, `broadcast of 8 f32 from 0`, `send of 3 i64 to 1`.
std::string describe(const Operation& operation);

// Whether two ranks posted the same collective, or the two ends of one transfer agree.
bool agree(const Operation& a, int rank_a, const Operation& b, int rank_b);

// `[0, 2, 5]`
std::string listOf(const std::vector<int>& ranks);

// Throws UserError unless `members` are distinct ranks of a job of `job_size` that contain `rank`.
// Returns the position of `rank`.
int positionInTeam(const std::vector<int>& members, int rank, int job_size);

// The part of `count` elements that `rank` of `size` reduces. Equal parts, the last ones may be
// short or empty.
struct Chunk {
  int64_t begin;
  int64_t count;
};
Chunk chunkOf(int64_t count, int size, int rank);

}  // namespace heddle::comm
