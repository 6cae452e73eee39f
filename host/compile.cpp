#include "host/compile.h"

#include <algorithm>
#include <iterator>

#include "host/compile_again.h"
#include "host/device/attention.h"
#include "host/lower/lower.h"
#include "host/passes/pipeline.h"
#include "ir/passes/pipeline.h"
#include "ir/segment/segment.h"

namespace heddle::host {

namespace {

// Gives each pipeline the part of the options that belongs to it. CompileOptions::passes.skip names
// passes of both; what names no pass on the fusion is left to the second pipeline, which rejects
// unknown names.
Program compiled(const Fusion& fusion, int64_t job_size, const CompileOptions& options,
                 const SegmentOptions& library, bool verifies) {
  heddle::PassOptions fusion_passes;
  PassOptions program_passes = options.passes;
  const std::vector<std::string_view> names = heddle::passNames();
  const auto of_fusion = [&](const std::string& pass) {
    return std::find(names.begin(), names.end(), pass) != names.end();
  };
  std::copy_if(options.passes.skip.begin(), options.passes.skip.end(),
               std::back_inserter(fusion_passes.skip), of_fusion);
  std::erase_if(program_passes.skip, of_fusion);
  fusion_passes.timing = options.passes.timing;
  fusion_passes.dump = options.dump_fusion;
  fusion_passes.verify = verifies;
  const Fusion ready = heddle::runPasses(fusion, job_size, fusion_passes);
  Program program = lower(segment(ready, library), job_size);
  return verifies ? runPasses(std::move(program), program_passes)
                  : runPassesAgain(std::move(program), program_passes);
}

}  // namespace

Program compile(const Fusion& fusion, int64_t job_size, const CompileOptions& options) {
  return compiled(fusion, job_size, options, {}, true);
}

Program compile(const Fusion& fusion, int64_t job_size, const CompileOptions& options,
                const SegmentOptions& library) {
  return compiled(fusion, job_size, options, library, true);
}

Program compileAgain(const Fusion& fusion, int64_t job_size, const CompileOptions& options,
                     const SegmentOptions& library) {
  return compiled(fusion, job_size, options, library, false);
}

}  // namespace heddle::host
