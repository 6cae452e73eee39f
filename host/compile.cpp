#include <algorithm>
#include <iterator>

#include "host/attention.h"
#include "host/executable.h"
#include "host/lower.h"
#include "ir/passes.h"
#include "ir/segment.h"

namespace heddle::host {

// The names of CompileOptions::passes.skip are of passes on the fusion or on the program; the
// latter pipeline refuses names that neither has.
Program compile(const Fusion& fusion, int64_t job_size, const CompileOptions& options) {
  return compile(fusion, job_size, options, {});
}

Program compile(const Fusion& fusion, int64_t job_size, const CompileOptions& options,
                const SegmentOptions& library) {
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
  const Fusion ready = heddle::runPasses(fusion, job_size, fusion_passes);
  return runPasses(lower(segment(ready, library), job_size), program_passes);
}

}  // namespace heddle::host
