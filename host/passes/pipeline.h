#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "host/program/pass_options.h"
#include "host/program/program.h"
#include "ir/graph/fusion.h"

namespace heddle::host {

// Runs the fusion passes (ir/passes/pipeline.h) with the options of a compilation. options.skip may
// name host passes too.
Fusion runFusionPasses(const Fusion& fusion, int64_t job_size, const PassOptions& options);

// Runs the passes of host/passes/pipeline.cpp in order. If options.verify is set, the result passes
// verify(). If the sizes of a run decide whether matrix products are split into chunks, the result
// is one `if` with both versions, and the passes have run on each.
// options.skip may name fusion passes too.
// UserError for a name to skip that is no pass, for chunks outside 0 .. kMostChunks, and for a
// stream split that no collective can follow.
Program runPasses(Program program, const PassOptions& options = {});

// Returns the names of the host passes in order.
std::vector<std::string_view> passNames();

}  // namespace heddle::host
