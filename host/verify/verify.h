#pragma once

#include <cstdint>
#include <optional>

#include "host/program/program.h"
#include "host/unroll/unroll.h"

namespace heddle::host {

// The job that a program will run in, where that is known.
struct ActualJob {
  int64_t ranks = 0;  // 0: not known
  // Of the symbols of the program; nullopt: not known before the inputs are.
  std::optional<SizeBindings> sizes = {};
};

// Legality of a Program, without sizes: ids in range, kinds of slots, arity and types of launches
// against their segments, tokens posted before a Wait elsewhere than on a fresh token, groups well
// formed, no use after Free, no double Free, every Allocate freed or returned on every path, stream
// ids, loop indices in scope. Then, for every rank of a job, the races of its unrolled program, and
// what all of them post (host/verify/match_collectives.h). The job is the actual one where it is
// known, else the smallest that the meshes and peers fit (the three smallest when the program
// depends on the job's size). Sizes are those given, else the defaults; symbols without one get the
// first of a few small values for which the views exist. Where only the sizes are not known, and
// none of these fit, the small jobs are checked instead. UserError naming the instruction by index
// and text.
void verify(const Program& program, const ActualJob& actual = {});

// verify() without the rule that every buffer is freed or returned, for a program that insert_frees
// has not seen yet.
void verifyOrder(const Program& program);

// Whether a program must free its buffers. No: insert_frees has not seen it yet.
enum class BuffersAreFreed : bool { No, Yes };

// Races of one unrolled rank: two accesses to overlapping bytes of one buffer, at least one a
// write, with no order between them by stream, RecordEvent/WaitEvent or token/Wait; a borrowed
// buffer touched before its Wait; an access not ordered after the Allocate or before the Free; an
// output not ordered before the end of stream 0; a buffer that is neither freed nor returned,
// unless `freed` is No.
void checkRaces(const Program& program, const Unrolled& unrolled,
                BuffersAreFreed freed = BuffersAreFreed::Yes);

}  // namespace heddle::host
