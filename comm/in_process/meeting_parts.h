#pragma once

#include "comm/in_process/job.h"

// How the work of a meeting is cut up: the same for every kind of memory.
namespace heddle::comm {

// Moves elements within the memory of a transport.
class Mover {
 public:
  virtual ~Mover() = default;
  virtual void copy(void* to, const void* from, int64_t bytes) = 0;  // bytes > 0, to != from
  // dst = srcs[0] op srcs[1] op ...; dst may be one of srcs.
  virtual void reduce(void* dst, std::span<const void* const> srcs, int64_t count, DType dtype,
                      ReduceOp op) = 0;
};

// Parts of a full meeting, which may be moved in any order or at the same time: one a rank, part r
// being the share of seat r; one for a transfer; none for a barrier.
int partsOf(const Meeting& meeting);

// Part r of a reduction to all or to the root reduces chunk r of everybody's data and writes it
// where it is wanted, which is right in place because nothing else touches chunk r. Part r of a
// gather moves what rank r has, and of everything else it fills rank r's result.
void movePart(const Meeting& meeting, int part, Mover& mover);

}  // namespace heddle::comm
