#pragma once

#include "host/program/program.h"

namespace heddle::host {

// Moves collectives from stream 0 to other streams, so that they run beside other work. Collectives
// share a stream if they have the same team (the ranks that take part) and the same copy channel
// (comm::Carrier). Streams are numbered in the order in which the program first uses them, so the
// numbers are the same on every rank. There are at most 15 of these streams. The collectives of all
// further pairs of team and copy channel share stream 15. All other instructions stay on stream 0.
//
// Run this before sinkWaits(), which puts each wait on the stream of the instruction that needs the
// wait. A program does not change in these cases:
//   The program already has several streams.
//   The author of the program ordered its streams (isUnordered() in
//     host/passes/analysis/buffer_accesses.h is false).
Program assignStreams(Program program);

}  // namespace heddle::host
