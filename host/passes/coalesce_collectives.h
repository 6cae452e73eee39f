#pragma once

#include "host/program/pass_options.h"

namespace heddle::host {

// Joins small collectives into groups. This saves time, because starting a small collective takes
// longer than moving its bytes. A group is one Communicate instruction with several pairs of
// buffers (Communicate::also). The instruction posts (starts) all collectives of the group. The
// next instruction is one Wait for all of them. sinkWaits() later moves this Wait down.
//   The collectives of a group have the same kind, reduction, root, team and carrier
//     (comm::Carrier), and the same ranks execute them (Instruction::on). mayGroup() must allow the
//     kind. No collective of a group depends on another one of the group.
//   The group is posted at the position of its last collective. The other collectives of the group
//     therefore move down. They do not move past an instruction that accesses their output, writes
//     their input or redefines one of their slots (names of buffers).
//   If two or more collectives of the same kind read one buffer, or write one buffer, none of them
//     is joined. They are usually pieces of one collective, which an earlier pass or the author
//     split on purpose.
//   CostConstants (host/passes/chunk/cost_constants.h) limits the bytes of each collective that is
//     joined, and the bytes and the number of collectives of a group. The bytes are those at
//     nominal sizes (host/passes/analysis/nominal_sizes.h), so the groups are the same on every
//     rank.
//   A token connects a post with the Wait for it. A collective is joined only if its token has
//     exactly one post and one Wait. The Wait must come after the post, on the same ranks.
//
// Run this after liftPosts(), which brings posts together, and before assignStreams() and
// sinkWaits(). A program does not change if it has several streams, or if its author ordered its
// streams (isUnordered() in host/passes/analysis/buffer_accesses.h is false).
Program coalesceCollectives(Program program, const PassOptions& options);

}  // namespace heddle::host
