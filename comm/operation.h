#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "comm/communicator.h"

// What the transports share: how an operation is checked, named in messages and cut into parts.
namespace heddle::comm {

// Throws UserError for a peer outside a communicator of `size`, a negative or overflowing count, a
// null buffer, or an average of integers.
void checkGroup(std::span<const Operation> group, int size);

bool isPointToPoint(CollectiveKind kind);

// `allreduce(sum) of 8 f32`, `send of 3 i64 to 1`.
std::string describe(const Operation& operation);

// Whether two ranks posted the same collective, or the two ends of one transfer agree.
bool agree(const Operation& a, const Operation& b);

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
