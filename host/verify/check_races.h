#pragma once

#include "host/program/program.h"
#include "host/unroll/unroll.h"

namespace heddle::host {

// Makes the same checks as verify() (host/verify/verify.h) for an unknown job, except that buffers
// need not be freed or returned. Use this function for programs on which the pass insert_frees
// (host/passes/insert_frees.h) has not run yet.
void verifyOrder(const Program& program);

// Says whether a program must free its buffers. No: the pass insert_frees has not run yet.
enum class BuffersAreFreed : bool { No, Yes };

// Checks the unrolled program of one rank for races and wrong lifetimes. Two accesses conflict if
// they are to overlapping bytes of one buffer and at least one of them is a write. Three things
// determine the order of two accesses: a common stream, a RecordEvent with a WaitEvent, or a token
// with a Wait. Throws UserError that names the instruction and the buffer for
// - a race: two conflicting accesses without an order
// - an access to an input that is not ordered after the start of stream 0
// - an access that conflicts with a posted operation, before a Wait on the token of this operation
// - an access that is not ordered after the Allocate of the buffer, or not before its Free
// - a second Free of a buffer
// - a Free of a buffer that belongs to an input or output
// - a write to an input that is not donated and whose memory no output shares
// - a write to an input after the `alias` that makes an output a view of this input
//   (host/verify/returned_views.h lists exceptions)
// - a post, or other work except a Free, that is not ordered before the end of stream 0
// - a buffer that is allocated at the end of only one body of a branch that the run decides
// - a buffer that is neither freed nor returned, unless `freed` is No
void checkRaces(const Program& program, const Unrolled& unrolled,
                BuffersAreFreed freed = BuffersAreFreed::Yes);

}  // namespace heddle::host
