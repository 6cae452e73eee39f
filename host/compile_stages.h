#pragma once

#include "host/compile.h"
#include "ir/segment/segment.h"

namespace heddle::host {

// Compiles a fusion for a device that has a library for attention. `library` selects the attentions
// that this library computes as one call. The selection depends on the sizes of the run.
Program compile(const Fusion& fusion, int64_t job_size, const CompileOptions& options,
                const SegmentOptions& library);

// The next two functions are the two parts of compile(), for a caller that compiles a fusion for
// several sets of sizes. segmentsForAllSizes() runs the passes on the fusion, and splits the result
// into segments (ir/segment/segment.h). The caller needs it only once. For each set of sizes, the
// caller then splits the library calls that the sizes do not allow (splitCalls() in
// ir/segment/library_calls.h). compileSegments() lowers the result, and runs the passes on the
// program.
SegmentedFusion segmentsForAllSizes(const Fusion& fusion, int64_t job_size,
                                    const CompileOptions& options, const SegmentOptions& library);
// `segmented` is the result of splitCalls().
// If options.passes.verify is false, neither of the two functions verifies its result. This halves
// the time of compile(). The caller must then verify the program, unless it equals a verified
// program.
Program compileSegments(const SegmentedFusion& segmented, int64_t job_size,
                        const CompileOptions& options);

}  // namespace heddle::host
