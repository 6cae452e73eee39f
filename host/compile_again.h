#pragma once

#include "host/compile.h"
#include "ir/segment/segment.h"

namespace heddle::host {

// Compiles a fusion that compile() has compiled before with other size defaults. This function
// skips the verification after the passes, because verification takes half of the time of
// compile(). The caller must verify the result, or must find that it equals a verified program.
Program compileAgain(const Fusion& fusion, int64_t job_size, const CompileOptions& options,
                     const SegmentOptions& library);

}  // namespace heddle::host
