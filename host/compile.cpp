#include "host/compile.h"

#include <utility>

#include "host/compile_again.h"
#include "host/device/attention.h"
#include "host/lower/lower.h"
#include "host/passes/pipeline.h"
#include "ir/base/pass_driver.h"
#include "ir/segment/segment.h"

namespace heddle::host {

namespace {

// The passes on the fusion come first, because segmentation reads the shardings that they choose.
Program compiled(const Fusion& fusion, int64_t job_size, const PassOptions& passes,
                 const SegmentOptions& library) {
  const Fusion ready = runFusionPasses(fusion, job_size, passes);
  const SegmentedFusion segmented =
      timedPass(passes, "segment", [&] { return segment(ready, library); });
  Program program = timedPass(passes, "lower", [&] { return lower(segmented, job_size); });
  return runPasses(std::move(program), passes);
}

}  // namespace

Program compile(const Fusion& fusion, int64_t job_size, const CompileOptions& options) {
  return compiled(fusion, job_size, options.passes, {});
}

Program compile(const Fusion& fusion, int64_t job_size, const CompileOptions& options,
                const SegmentOptions& library) {
  return compiled(fusion, job_size, options.passes, library);
}

Program compileAgain(const Fusion& fusion, int64_t job_size, const CompileOptions& options,
                     const SegmentOptions& library) {
  PassOptions passes = options.passes;
  passes.verify = false;
  return compiled(fusion, job_size, passes, library);
}

}  // namespace heddle::host
