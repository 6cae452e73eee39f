#pragma once

#include <cstdint>
#include <optional>

#include "host/program/program.h"
#include "host/unroll/unroll.h"

namespace heddle::host {

// What is known of the job in which a program will run.
struct ActualJob {
  int64_t ranks = 0;  // 0: not known
  // Values of the symbols of the program; nullopt: unknown until there are inputs.
  std::optional<SizeBindings> sizes = {};
};

// Checks that a program is legal. UserError names the instruction by index and text.
//
// Without sizes:
// - ids and stream ids are in range, and loop indices are in scope
// - slots have the kind, dtype and rank that each instruction needs; launches fit their segments
// - some instruction posts each token and records each event that is waited for
// - groups end in the body in which they begin, and post only sends and receives
//
// For each rank of a job, on its unrolled program:
// - the views exist
// - there are no races, and every buffer is freed or returned on every path (checkRaces(); on the
//   first 64 ranks)
// - all ranks post collectives that match (host/verify/match_collectives.h)
//
// The jobs and sizes for which unrolled programs are checked:
// - The job is the actual one if it is known. Otherwise it is the smallest one that contains the
//   ranks that meshes, roots and peers name. A program that depends on the number of ranks is
//   checked in the three smallest ones.
// - Symbols have the actual sizes if these are known, else their defaults. Symbols without a
//   default get the first of a few small values for which all views exist.
// - If the actual sizes are unknown and the views of the actual job do not exist with any of these
//   values, the small jobs are checked instead.
void verify(const Program& program, const ActualJob& actual = {});

// Makes the same checks as verify(), except that buffers need not be freed or returned. Use it for
// a program on which the pass insert_frees has not run yet.
void verifyOrder(const Program& program);

// Whether a program must free its buffers. No: the pass insert_frees has not run yet.
enum class BuffersAreFreed : bool { No, Yes };

// Checks the unrolled program of one rank for races and wrong lifetimes. UserError names the
// instruction and the buffer. Errors are:
// - a race: two accesses to overlapping bytes of one buffer, at least one of which is a write, and
//   whose order neither a stream nor a RecordEvent with its WaitEvent nor a token with its Wait
//   determines
// - an access to a borrowed buffer before the Wait on its token
// - an access that is not ordered after the Allocate or before the Free; a second Free
// - a Free of an input or output; a write to an input that is not also an output
// - work or a post that is not ordered before the end of stream 0
// - a buffer that is neither freed nor returned, unless `freed` is No
void checkRaces(const Program& program, const Unrolled& unrolled,
                BuffersAreFreed freed = BuffersAreFreed::Yes);

}  // namespace heddle::host
