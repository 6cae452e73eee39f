#pragma once

#include "host/program/program.h"

namespace heddle::host {

// Moves collectives off stream 0, so that they run beside other work. Each pair of a team (the
// ranks of a collective) and a copy channel gets its own stream. Streams are numbered in the order
// of first use, which is the same on every rank. All other instructions stay on stream 0.
//
// Run this before sinkWaits(), which puts each wait on the stream that needs it. A program does not
// change if it already has several streams, or if its author ordered it (isUnordered() in
// host/passes/analysis/buffer_accesses.h is false).
Program assignStreams(Program program);

}  // namespace heddle::host
