#include "ir/base/edit_distance.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace heddle {

size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0]++;
    for (size_t j = 0; j < b.size(); ++j) {
      size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row[b.size()];
}

// The distance is at least the difference of the lengths. The function therefore skips a candidate
// if the lengths alone differ too much.
std::string suggestionFor(std::string_view name, const std::vector<std::string_view>& candidates) {
  std::string_view nearest;
  size_t best = name.size() + 1;
  for (std::string_view candidate : candidates) {
    const size_t most = std::max(name.size(), candidate.size()) / 3;
    if (std::max(name.size(), candidate.size()) - std::min(name.size(), candidate.size()) > most) {
      continue;
    }
    const size_t distance = editDistance(name, candidate);
    if (distance > most || distance >= best) continue;
    best = distance;
    nearest = candidate;
  }
  return nearest.empty() ? "" : "; the nearest name is '" + std::string(nearest) + "'";
}

}  // namespace heddle
