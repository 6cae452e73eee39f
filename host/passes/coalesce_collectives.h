#pragma once

#include "host/program/pass_options.h"

namespace heddle::host {

// Joins small collectives into one Communicate with several pairs of buffers (Communicate::also).
// They then have one post, one token and one wait. The reason: starting a small collective takes
// longer than moving its bytes.
//   The collectives of one group have the same kind, reduction, root, team and carrier. They do not
//     depend on each other.
//   The group is posted at the position of its last collective. A collective moves past other
//     instructions only if they do not access its buffers.
//   Collectives on parts of one buffer are not joined, because an earlier pass or the author split
//     them on purpose.
//   CostConstants (host/passes/chunk/cost_constants.h) limits the bytes and the number of
//     collectives. Sizes are nominal, so the result is the same on every rank.
//
// Run this after liftPosts(), which brings posts together, and before assignStreams() and
// sinkWaits(). Programs with several streams, events, groups or posts in bodies do not change. A
// collective is not joined if its token is posted or waited for more than once.
Program coalesceCollectives(Program program, const PassOptions& options);

}  // namespace heddle::host
