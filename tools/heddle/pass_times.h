#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heddle::tools {

// The seconds of each compiler pass, for --time-passes.
class PassTimes {
 public:
  // Adds to the time of the pass, which may run several times.
  void add(std::string_view pass, double seconds);
  // Returns one line per pass, in the order in which they first ran, and their sum.
  std::string table() const;

 private:
  std::vector<std::pair<std::string, double>> passes_;
};

}  // namespace heddle::tools
