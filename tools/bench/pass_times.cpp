#include "tools/bench/pass_times.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/base/check.h"

namespace heddle::tools {

void PassTimes::add(std::string_view pass, double seconds) {
  const auto at = std::find_if(passes_.begin(), passes_.end(),
                               [&](const auto& entry) { return entry.first == pass; });
  if (at == passes_.end()) {
    passes_.emplace_back(pass, seconds);
  } else {
    at->second += seconds;
  }
}

std::string PassTimes::table() const {
  if (passes_.empty()) return "--time-passes: no pass runs on a host program\n";
  std::string text = "seconds   pass\n";
  double sum = 0;
  for (const auto& [pass, seconds] : passes_) {
    text += fmt::format("{:.6f}  {}\n", seconds, pass);
    sum += seconds;
  }
  return text + fmt::format("{:.6f}  all passes\n", sum);
}

}  // namespace heddle::tools
