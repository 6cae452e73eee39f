#pragma once

#include "host/program/program.h"
#include "ir/segment/segment.h"

namespace heddle::host {

// Lowers a segmented fusion, that is, translates it to a host program (host/program/program.h) for
// a job of `job_size` ranks.
//
// - The scalars that the fusion computes are translated first. Each one becomes an Evaluate
//   instruction, except scalars that nothing reads or returns, and constants that only kernels
//   read.
// - The groups (ir/segment/segment.h) are translated in order, all on stream 0. A kernel becomes
//   Allocate and LaunchKernel. A library call becomes Allocate and CallLibrary. A collective
//   becomes Allocate, Communicate and Wait (an all-to-all also needs a kernel, lower_all_to_all.h).
//   A view becomes Alias. A cat becomes one Allocate. Other groups write its pieces into slices of
//   the allocated tensor. A Copy stores each piece that no group can write in this way.
// - If a backward attention reads the results of a forward attention, the log-sums of the forward
//   (host/program/library_op.h) get a slot. The fusion has no value for them.
// - The program has no Free instruction and uses only stream 0. The passes of
//   host/passes/pipeline.cpp add Free instructions and streams.
// - If a mesh is smaller than the job, only the ranks of the mesh execute the instructions for
//   values on this mesh.
// - Every `set` op that changes a sharding must be a single resharding step, such as one allgather
//   (ir/analysis/reshard_step.h).
Program lower(const SegmentedFusion& segmented, int64_t job_size);

}  // namespace heddle::host
