#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "host/program/pass_options.h"
#include "host/program/program.h"
#include "ir/graph/fusion.h"

namespace heddle::host {

// Runs the fusion passes (ir/passes/pipeline.h) for a job of `job_size` ranks. options.skip names
// the passes to leave out. Names of host passes in options.skip are ignored here.
Fusion runFusionPasses(const Fusion& fusion, int64_t job_size, const PassOptions& options);

// Runs the host passes in the order of host/passes/pipeline.cpp. If options.verify is set, verify()
// (host/verify/verify.h) checks the result. Names of fusion passes in options.skip are ignored
// here.
//
// The pass chunk_collectives splits matrix products and collectives into chunks of rows. A stream
// split in the program text, such as `stream(0: 4)` of a slot, requests 4 chunks along axis 0. A
// stream split has no effect if options.overlap is false. If the rows divide into chunks only for
// some sizes, the returned program is one If instruction. It contains the split and the unsplit
// version, and each run selects one of them.
//
// Throws UserError in these cases:
// - A name in options.skip is not a pass.
// - options.chunks is outside 0 .. PassOptions::kMostChunks.
// - A stream split cannot be fulfilled (host/passes/chunk/chunk_collectives.h).
// - A Call cannot be replaced by the called program (inlineCalls() in host/program/visit.h).
// - An output with ReusedInput::required needs a copy (host/passes/write_in_place.h).
// - options.verify is set, and verify() finds an error.
Program runPasses(Program program, const PassOptions& options = {});

// Returns the names of the host passes in order.
std::vector<std::string_view> passNames();

}  // namespace heddle::host
