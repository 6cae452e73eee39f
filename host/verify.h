#pragma once

#include "host/program.h"
#include "host/trace.h"

namespace heddle::host {

// Legality of a Program, without sizes: ids in range, kinds of slots, arity and types of launches
// against their segments, tokens posted before a Wait elsewhere than on a fresh token, groups well
// formed, no use after Free, no double Free, every Allocate freed or returned on every path, stream
// ids, loop indices in scope. Then the races of a trace for every rank of the smallest job that the
// meshes and peers fit (of the three smallest when the program depends on the job's size), with the
// default sizes; symbols without one get the first of a few small values for which the views exist.
// UserError naming the instruction by index and text.
void verify(const Program& program);

// Races of one unrolled rank: two accesses to overlapping bytes of one buffer, at least one a
// write, with no order between them by stream, RecordEvent/WaitEvent or token/Wait; a borrowed
// buffer touched before its Wait; an access not ordered after the Allocate or before the Free; an
// output not ordered before the end of stream 0; a buffer that is neither freed nor returned.
void checkRaces(const Program& program, const Trace& trace);

}  // namespace heddle::host
