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

// Return the results of a file as a table and as CSV. The table begins with the path if
// `names_path` is true. All results have one header.
std::string tuneText(const TunedFile& file, bool names_path);
std::string tuneCsvHeader();
std::string tuneCsv(const TunedFile& file);

// Returns a line about modelRanks() of all kernels, and a line about their first candidates: how
// often the first one is almost the fastest, and how much faster the chosen ones are. A line
// without a value is left out.
std::string tuneSummary(const std::vector<TunedFile>& files);

}  // namespace heddle::tools
