#pragma once

#include "host/program/program.h"

namespace heddle::host {

// Moves collectives from stream 0 to other streams, so that they run at the same time as other
// work. All other instructions stay on stream 0. Collectives share a stream if they have the same
// team (the ranks that take part) and use the same copy channel (comm::Carrier), or none. The
// streams are numbered from 1, in the order in which the program first uses them. Stream 15 is the
// last one: the 15th pair of team and copy channel shares this stream with all later pairs.
//
// Run this before sinkWaits(), because sinkWaits() also chooses the stream of each wait. A program
// does not change if it already has several streams, or if its author ordered its streams
// (isUnordered() in host/passes/analysis/buffer_accesses.h is false).
Program assignStreams(Program program);

}  // namespace heddle::host
