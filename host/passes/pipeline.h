#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "host/program/pass_options.h"
#include "host/program/program.h"
#include "ir/graph/fusion.h"

namespace heddle::host {

// Runs the fusion passes (ir/passes/pipeline.h) with the options of a compilation. options.skip may
// also name host passes.
Fusion runFusionPasses(const Fusion& fusion, int64_t job_size, const PassOptions& options);

// Runs the host passes in the order of host/passes/pipeline.cpp. If options.verify is set, verify()
// checks the result. If the sizes of a run decide whether matrix products are split into chunks,
// the result is one `if` that contains the split and the unsplit version. All later passes have run
// on both versions. options.skip may also name fusion passes.
// Throws UserError if
//   a name in options.skip is not a pass,
//   options.chunks is outside 0 .. PassOptions::kMostChunks, or
//   no collective can be split as a stream split requests.
Program runPasses(Program program, const PassOptions& options = {});

// Returns the names of the host passes in order.
std::vector<std::string_view> passNames();

}  // namespace heddle::host
