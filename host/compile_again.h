#pragma once

#include "host/compile.h"
#include "ir/segment/segment.h"

namespace heddle::host {

// Compiles a fusion again, after compile() has compiled it with different default sizes
// (Fusion::size_defaults). This function does not verify the program, because verification takes
// half of the time of compile(). The caller must verify the result, unless it equals a verified
// program.
Program compileAgain(const Fusion& fusion, int64_t job_size, const CompileOptions& options,
                     const SegmentOptions& library);

}  // namespace heddle::host
