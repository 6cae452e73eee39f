#pragma once

#include "host/program/program.h"

namespace heddle::host {

// Moves collectives from stream 0 to other streams, so that they run beside other work. Collectives
// share a stream if they have the same team (the ranks that take part) and the same copy channel
// (comm::Carrier). Streams are numbered in the order in which the program first uses them, so the
// numbers are the same on every rank. There are at most 15 of these streams; if more are needed,
// all further collectives share the last one. All other instructions stay on stream 0.
//
// Run this before sinkWaits(), which puts each wait on the stream that needs it. A program does not
// change in these cases:
//   It already has several streams.
//   Its author ordered its streams (isUnordered() in host/passes/analysis/buffer_accesses.h is
//     false).
Program assignStreams(Program program);

}  // namespace heddle::host
