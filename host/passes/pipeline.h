#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "host/program/pass_options.h"
#include "host/program/program.h"
#include "ir/graph/fusion.h"

namespace heddle::host {

// Runs the fusion passes (ir/passes/pipeline.h) for a job of `job_size` ranks. options.skip names
// passes to leave out; it may also contain names of host passes.
Fusion runFusionPasses(const Fusion& fusion, int64_t job_size, const PassOptions& options);

// Runs the host passes in the order of host/passes/pipeline.cpp. If options.verify is set, verify()
// (host/verify/verify.h) checks the result. options.skip may also contain names of fusion passes.
//
// The pass chunk_collectives splits matrix products and collectives into chunks. If the sizes of a
// run decide whether the split version may run, the result is an If instruction that contains the
// split and the unsplit version. The later passes have run on both versions.
// Throws UserError if
//   a name in options.skip is not a pass,
//   options.chunks is outside 0 .. PassOptions::kMostChunks, or
//   no collective can be split as a stream split requests.
Program runPasses(Program program, const PassOptions& options = {});

// Returns the names of the host passes in order.
std::vector<std::string_view> passNames();

}  // namespace heddle::host
