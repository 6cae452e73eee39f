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

// tuneText() returns the results of a file as a table, and tuneCsv() returns them as CSV. The table
// begins with the path if `names_path` is true. tuneCsvHeader() returns the header that precedes
// the CSV of all files.
std::string tuneText(const TunedFile& file, bool names_path);
std::string tuneCsvHeader();
std::string tuneCsv(const TunedFile& file);

// Returns two lines. The first line has the rank correlations of predicted and measured times
// (modelRanks() in tools/tune/rank_correlation.h). The second line says how often the first
// candidate is within 5 % of the fastest, and how much faster the chosen candidates are than the
// first ones. Leaves out a line if nothing was measured for it.
std::string tuneSummary(const std::vector<TunedFile>& files);

}  // namespace heddle::tools
