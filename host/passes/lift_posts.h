#pragma once

#include "host/program/program.h"

namespace heddle::host {

// Moves every top-level Communicate up, together with the Allocate of its output, so that it starts
// as soon as its input is ready.
//   Posts keep their order and do not pass waits, loops and branches.
//   A send of Communicate may pass waits for unrelated posts, so that pipeline stages overlap.
//   Other posts on only some ranks (`on @mesh`) do not move.
// Run this before assignStreams(), so that the event that a post waits for is recorded early.
// Programs with events, groups, or posts in bodies do not change: their author ordered them.
Program liftPosts(Program program);

}  // namespace heddle::host
