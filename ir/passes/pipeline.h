#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "ir/base/pass_driver.h"
#include "ir/graph/fusion.h"

namespace heddle {

// Runs the passes of ir/passes/pipeline.cpp in order for a job of `job_size` ranks. The result is
// ready for segment() (ir/segment/segment.h), which needs these properties. They are ensured unless
// options.skip names a pass that ensures one of them:
//  - it has no symbolic sizes. A symbolic size, written `n?`, may be 1 in a run, and its axes then
//    broadcast. The default sizes decide which symbolic sizes are 1
//    (ir/analysis/concretize_sizes.h);
//  - the sizes of all meshes are known;
//  - expressions that no output of `fusion` needs are removed;
//  - it has no shardings if job_size is 1, or if `fusion` has none. Otherwise each tensor has a
//    sharding, only `set` expressions communicate, and each `set` is one ReshardStep
//    (ir/analysis/reshard_step.h).
// `other_passes` contains the names of the passes that run later, on the host program. options.skip
// may contain these names too. Throws UserError if the fusion cannot be lowered, or if options.skip
// contains a name that no pass has.
Fusion runPasses(const Fusion& fusion, int64_t job_size, const PassOptions& options = {},
                 const std::vector<std::string_view>& other_passes = {});

// Returns the names of the passes in order.
std::vector<std::string_view> passNames();

}  // namespace heddle
