#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "host/program/pass_options.h"
#include "host/program/program.h"
#include "ir/graph/fusion.h"
#include "ir/segment/segment.h"

namespace heddle::host {

// Fusion -> passes -> segments -> lowering -> passes -> Program, for one layout class of inputs.
// Meshes take their size from `job_size`. Deterministic: the same on every rank.
struct CompileOptions {
  PassOptions passes;
  std::function<void(std::string_view stage, const Fusion&)>
      dump_fusion;  // after a pass that changed it
};
Program compile(const Fusion& fusion, int64_t job_size, const CompileOptions& options = {});

// compile() for devices with a library for attention. The program is good for any sizes with the
// same decidingSizes().
Program compile(const Fusion& fusion, int64_t job_size, const CompileOptions& options,
                const SegmentOptions& library);

}  // namespace heddle::host
