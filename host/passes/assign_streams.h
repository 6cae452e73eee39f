#pragma once

#include "host/program/program.h"

namespace heddle::host {

// Gives the collectives of each team and copy channel their own stream, so that they run beside
// other work. Streams are numbered in the order of first use, which is the same on every rank. All
// other instructions stay on stream 0. Run this before sinkWaits(), which puts each wait on the
// stream that needs it. Leaves a program unchanged if it has several streams or an order of its own
// (isUnordered()).
Program assignStreams(Program program);

}  // namespace heddle::host
