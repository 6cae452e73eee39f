#pragma once

#include "host/compile.h"
#include "ir/segment/segment.h"

namespace heddle::host {

// Compiles a fusion for a device that has a library for attention. `library` selects the attentions
// that this library computes as one call. SegmentOptions::attention_for_sizes decides this for the
// sizes of one run, so other sizes may need another program.
Program compile(const Fusion& fusion, int64_t job_size, const CompileOptions& options,
                const SegmentOptions& library);

// The next two functions are the first and the last part of compile(), for a caller that compiles a
// fusion for several sets of sizes:
// 1. The caller calls segmentsForAllSizes() once. It runs the passes on the fusion, and splits the
//    result into segments (ir/segment/segment.h).
// 2. For each set of sizes, the caller calls splitCalls() (ir/segment/library_calls.h). It replaces
//    the library calls that the sizes do not allow by other segments.
// 3. For each result, the caller calls compileSegments(). It lowers the segments to a program, and
//    runs the passes on the program.
// If options.passes.verify is false, neither of the two functions verifies its result. This halves
// the time of compile(). The caller must then verify the program, unless it equals a verified
// program.
SegmentedFusion segmentsForAllSizes(const Fusion& fusion, int64_t job_size,
                                    const CompileOptions& options, const SegmentOptions& library);
// `segmented` is the result of splitCalls().
Program compileSegments(const SegmentedFusion& segmented, int64_t job_size,
                        const CompileOptions& options);

}  // namespace heddle::host
