#pragma once

#include "host/program/program.h"
#include "ir/segment/segment.h"

namespace heddle::host {

// Lowers a segmented fusion, that is, translates it to a host program (host/program/program.h) for
// a job of `job_size` ranks.
//
// - The scalars that the fusion computes are translated first. Each one becomes an Evaluate
//   instruction, except scalars on which no output and no group depends, and constants that only
//   groups read: a kernel contains its constants.
// - The groups (ir/segment/segment.h) are translated in order. A kernel becomes Allocate and
//   LaunchKernel. A library call becomes Allocate and CallLibrary. A collective becomes Allocate,
//   Communicate and Wait (an all-to-all also needs a kernel, lower_all_to_all.h). A view becomes
//   Alias.
// - A cat becomes one Allocate. A kernel that computes a piece of the cat writes the piece into a
//   slice of the allocated tensor: an Alias replaces the Allocate of the piece. A Copy stores each
//   piece that no kernel can write in this way. If a cat is a piece of another cat, an Alias
//   replaces its Allocate too.
// - If a backward attention reads the results of a forward attention, the log-sums of the forward
//   attention (host/program/library_op.h) get a slot. The fusion has no value for them.
// - The program has no Free instruction, and all instructions are on stream 0. The passes of
//   host/passes/pipeline.cpp add Free instructions and streams.
// - If a mesh is smaller than the job, only the ranks of the mesh execute the instructions for
//   values on this mesh.
// - Every `set` op that changes a sharding must be a single resharding step, such as one allgather
//   (ir/analysis/reshard_step.h).
Program lower(const SegmentedFusion& segmented, int64_t job_size);

}  // namespace heddle::host
