#pragma once

#include <string>

#include "tools/bench/measure.h"

namespace heddle::tools {

// The data that `heddle bench` prints.
struct BenchReport {
  std::string file;
  std::string device;
  int runs = 0;           // number of timed runs
  bool is_gpu = false;    // true: the rows show grid, block and resources
  bool roofline = false;  // true: the report has the columns floor_us and limit
  Measurements measurements;
};

// Return the report as a table, as CSV and as JSON. The first line of the CSV is the header. Every
// line of the CSV has the same number of columns.
std::string benchText(const BenchReport& report);
std::string benchCsv(const BenchReport& report);
std::string benchJson(const BenchReport& report);

}  // namespace heddle::tools
