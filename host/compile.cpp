#include "host/compile.h"

#include <utility>

#include "host/compile_stages.h"
#include "host/device/attention.h"
#include "host/lower/lower.h"
#include "host/passes/pipeline.h"
#include "ir/base/pass_driver.h"
#include "ir/segment/library_calls.h"

namespace heddle::host {

namespace {

Program compiled(const Fusion& fusion, int64_t job_size, const CompileOptions& options,
                 const SegmentOptions& library) {
  return compileSegments(
      splitCalls(segmentsForAllSizes(fusion, job_size, options, library), library), job_size,
      options);
}

}  // namespace

// The passes on the fusion come first, because segmentation reads the shardings that they choose.
SegmentedFusion segmentsForAllSizes(const Fusion& fusion, int64_t job_size,
                                    const CompileOptions& options, const SegmentOptions& library) {
  const Fusion ready = runFusionPasses(fusion, job_size, options.passes);
  return timedPass(options.passes, "segment", [&] { return segmentForAllSizes(ready, library); });
}

Program compileSegments(const SegmentedFusion& segmented, int64_t job_size,
                        const CompileOptions& options) {
  Program program = timedPass(options.passes, "lower", [&] { return lower(segmented, job_size); });
  return runPasses(std::move(program), options.passes);
}

Program compile(const Fusion& fusion, int64_t job_size, const CompileOptions& options) {
  return compiled(fusion, job_size, options, {});
}

Program compile(const Fusion& fusion, int64_t job_size, const CompileOptions& options,
                const SegmentOptions& library) {
  return compiled(fusion, job_size, options, library);
}

}  // namespace heddle::host
