#pragma once

#include "host/program/program.h"

namespace heddle::host {

// Every order between streams that the accesses of the top level need is there: a Wait where a
// posted operation must be over, else a RecordEvent right after the earlier access and a WaitEvent
// right before the later one. None of them could be left out. After the streams are given out and
// the waits have sunk; programs with groups or with posts or events in bodies are left alone.
Program insertSync(Program program);

}  // namespace heddle::host
