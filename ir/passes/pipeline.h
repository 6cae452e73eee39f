#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/fusion.h"

namespace heddle {

struct PassOptions {
  std::vector<std::string>
      skip;  // passes to leave out, by name; UserError when there is no such pass
  // Called with the name of each pass that changed the fusion, and what came out.
  std::function<void(std::string_view, const Fusion&)> dump;
  std::function<void(std::string_view, double)> timing;  // seconds
  bool verify = true;  // false: for who has seen what comes of the fusion with other size defaults
};

// Runs the passes of ir/passes/pipeline.cpp in order for a job of `job_size` ranks and verifies
// after each, unless it is told not to. What comes out is ready for segment(): meshes have their
// sizes, no expression is dead, and in a fusion with shardings each tensor has one, each expression
// but `set` is local to its rank, and each `set` is one step of ir/analysis/reshard_step.h.
// UserError for what cannot be lowered.
Fusion runPasses(const Fusion& fusion, int64_t job_size, const PassOptions& options = {});

// Names of the passes in order.
std::vector<std::string_view> passNames();

}  // namespace heddle
