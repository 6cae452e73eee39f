#pragma once

#include "host/compile.h"
#include "ir/segment/segment.h"

namespace heddle::host {

// Compiles for a device that has a library for attention. `library` selects the attentions that the
// library computes as one call. The selection depends on the sizes of the run.
Program compile(const Fusion& fusion, int64_t job_size, const CompileOptions& options,
                const SegmentOptions& library);

// compile() in two parts, for a caller that compiles a fusion for several sets of sizes. The first
// part runs the passes on the fusion, and splits the result into segments
// (ir/segment/segment.h). The second part only splits the library calls that the sizes do not
// allow.
SegmentedFusion segmentsForAllSizes(const Fusion& fusion, int64_t job_size,
                                    const CompileOptions& options, const SegmentOptions& library);
// `segmented` is the result of splitCalls() (ir/segment/library_calls.h).
// If options.passes.verify is false, neither part verifies its result, because verification takes
// half of the time of compile(). The caller must then verify the program, unless it equals a
// verified program.
Program compileSegments(const SegmentedFusion& segmented, int64_t job_size,
                        const CompileOptions& options);

}  // namespace heddle::host
