#pragma once

#include <algorithm>
#include <vector>

namespace heddle::tools {

// Returns the median, or 0 if there are no values. If the number of values is even, returns the
// larger of the two values in the middle.
inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace heddle::tools
