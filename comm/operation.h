#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "comm/communicator.h"

// Helper functions for all transports. They check operations, describe operations in messages, and
// split operations into parts.
namespace heddle::comm {

// Checks the operations that rank `rank` posts on a communicator of `size` ranks. Throws UserError
// in these cases:
// - A peer or root is outside the communicator.
// - A count is negative or too large, or a list of counts has the wrong length.
// - An all-to-all-v has different send and receive counts for this rank itself.
// - A buffer that this rank needs is null.
// - An all-to-all or all-to-all-v is in place.
// - Integers or bools are averaged, or elements of an f8 type are reduced.
void checkGroup(std::span<const Operation> group, int rank, int size);

bool isPointToPoint(CollectiveKind kind);
bool reduces(CollectiveKind kind);
// Returns whether copy engines can move the data of `kind` (Carrier::copy_channel).
bool mayCopy(CollectiveKind kind);
bool isRooted(CollectiveKind kind);  // reduce, broadcast, gather, scatter

// hasSend() returns whether a rank needs a send buffer, and hasRecv() whether it needs a receive
// buffer. `is_root` matters only if isRooted(kind).
bool hasSend(CollectiveKind kind, bool is_root);
bool hasRecv(CollectiveKind kind, bool is_root);

// sentBy() returns the number of elements in the send buffer, and receivedBy() the number in the
// receive buffer. Call them only for a rank that needs the buffer. `size` is the number of ranks of
// the communicator.
int64_t sentBy(const Operation& operation, int size);
int64_t receivedBy(const Operation& operation, int size);

// Returns a copy of the operation. The count lists of an all-to-all-v are copied into `storage`,
// which must outlive the returned operation.
Operation withOwnCounts(const Operation& operation, std::vector<int64_t>& storage);

// Returns the sum of the first `rank` counts. If parts lie in rank order without gaps, this is the
// index of the first element of the part of `rank`.
int64_t offsetOf(std::span<const int64_t> counts, int rank);

// Returns for example `allreduce(sum) of 8 f32`, `broadcast of 8 f32 from 0`, `send of 3 i64 to 1`.
std::string describe(const Operation& operation);

// Compares the operation `a` of rank `rank_a` with the operation `b` of rank `rank_b` (ranks within
// the communicator). Returns whether `a` and `b` can be parts of one collective, or the send and
// the receive of one transfer. For sends and receives, compares only `count` and `dtype`.
bool agree(const Operation& a, int rank_a, const Operation& b, int rank_b);

// Returns for example `[0, 2, 5]`.
std::string listOf(const std::vector<int>& ranks);

// Returns the position of `rank` in `members`. Throws UserError if `members` does not contain
// `rank`, contains a rank twice, or contains a rank outside the job of `job_size` ranks.
int positionInTeam(const std::vector<int>& members, int rank, int job_size);

// A range of elements of a collective. chunkOf() splits `count` elements into `size` chunks, one
// per rank, and returns the chunk of `rank`. All chunks have the same length, except that the last
// chunks may be shorter or empty.
struct Chunk {
  int64_t begin;
  int64_t count;
};
Chunk chunkOf(int64_t count, int size, int rank);

}  // namespace heddle::comm
