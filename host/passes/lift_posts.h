#pragma once

#include "host/program/program.h"

namespace heddle::host {

// Moves every top-level Communicate up, together with the Allocate of its output. The communication
// then starts as soon as its input is ready.
//   Posts keep their order, and they do not pass waits, loops and branches. Exception: a send may
//     pass waits for unrelated posts, so that pipeline stages overlap.
//   A post on only some ranks (`on @mesh`) does not move, unless it is a send.
// Run this before assignStreams(), so that the event that a post waits for is recorded early.
// Programs with events, groups, or posts in bodies do not change, because their author ordered
// them.
Program liftPosts(Program program);

}  // namespace heddle::host
