#pragma once

#include "host/compile.h"
#include "ir/segment/segment.h"

namespace heddle::host {

// compile() of a fusion that was compiled with other size defaults before, for a caller who
// verifies the result or finds that he has it already: nothing is verified after the passes, which
// is half of the time otherwise.
Program compileAgain(const Fusion& fusion, int64_t job_size, const CompileOptions& options,
                     const SegmentOptions& library);

}  // namespace heddle::host
