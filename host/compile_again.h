#pragma once

#include "host/compile.h"
#include "ir/segment/segment.h"

namespace heddle::host {

// Compiles for a device that has a library for attention. `library` selects the attentions that the
// library computes as one call. The selection depends on the sizes of the run. If decidingSizes()
// (host/device/attention.h) returns new values for a later run, compile the fusion again.
Program compile(const Fusion& fusion, int64_t job_size, const CompileOptions& options,
                const SegmentOptions& library);

// Compiles a fusion again, after compile() has compiled it with different default sizes
// (Fusion::size_defaults). This function does not verify the program, because verification takes
// half of the time of compile(). The caller must verify the result, unless it equals a verified
// program.
Program compileAgain(const Fusion& fusion, int64_t job_size, const CompileOptions& options,
                     const SegmentOptions& library);

}  // namespace heddle::host
