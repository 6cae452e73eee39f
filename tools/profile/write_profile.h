#pragma once

#include <string>

#include "codegen/compile/image_cache.h"
#include "host/run/profile/run_profile.h"
#include "tools/heddle/job.h"
#include "tools/profile/instruction_times.h"

namespace heddle::tools {

// These functions write the files of `heddle run --trace` and `--profile`. All ranks must call
// them, because rank 0 writes what all ranks have recorded. They throw UserError if the file cannot
// be written.

// Writes one timeline of all ranks.
void writeTimeline(const Rank& rank, host::RunProfile& profile, const std::string& path);

// Measures the peak rates of all ranks at the same time, and writes one table of all ranks.
void writeProfile(const Rank& rank, codegen::ImageCache& images, const TimesByInstruction& times,
                  const std::string& path);

}  // namespace heddle::tools
