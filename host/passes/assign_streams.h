#pragma once

#include "host/program/program.h"

namespace heddle::host {

// Each team of a program that is on stream 0 alone has a stream of its own for its collectives, in
// the order of first use, the same on every rank; everything else stays on stream 0. Before waits
// sink, because a wait belongs on the stream that needs it.
Program assignStreams(Program program);

}  // namespace heddle::host
