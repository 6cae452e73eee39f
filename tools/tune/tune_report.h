#pragma once

#include <string>
#include <vector>

#include "tools/tune/tune.h"

namespace heddle::tools {

// The results of one file.
struct TunedFile {
  std::string path;
  std::vector<TunedKernel> kernels;
};

// Return the results as a table and as CSV.
std::string tuneText(const std::vector<TunedFile>& files);
std::string tuneCsv(const std::vector<TunedFile>& files);

// Returns one line about modelRanks() of all kernels, or "" if it has no value.
std::string modelRanksText(const std::vector<TunedFile>& files);

}  // namespace heddle::tools
