#pragma once

#include "comm/in_process/job.h"

// Splits the data movement of an operation that all participants have posted (MatchedOperation in
// comm/in_process/job.h) into parts. The transports on host memory and on one GPU both use these
// parts.
namespace heddle::comm {

// Copies and reduces elements in the kind of memory that a transport uses.
class Mover {
 public:
  virtual ~Mover() = default;
  virtual void copy(void* to, const void* from, int64_t bytes) = 0;  // bytes > 0, to != from
  // dst = srcs[0] op srcs[1] op ...; dst may be one of srcs.
  virtual void reduce(void* dst, std::span<const void* const> srcs, int64_t count, DType dtype,
                      ReduceOp op) = 0;
};

// Returns the number of parts of an operation that all participants have posted. The parts may be
// moved in any order or at the same time. A barrier has no parts. Every collective except a barrier
// has one part per rank. A send with its receive has one part.
int partsOf(const MatchedOperation& matched);

// Moves one part:
// - Part r of an allreduce or reduce reduces chunk r (chunkOf() in comm/operation.h) of all inputs,
//   and writes the reduced chunk to the results. The operation may be in place, because only part r
//   accesses chunk r.
// - Part r of a gather moves the input of rank r.
// - Part r of every other collective fills the result of rank r.
// - The only part of a send with its receive fills the buffer of the receiver.
void movePart(const MatchedOperation& matched, int part, Mover& mover);

}  // namespace heddle::comm
