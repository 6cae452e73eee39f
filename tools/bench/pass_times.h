#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heddle::tools {

// The seconds of each compiler pass, for --time-passes.
class PassTimes {
 public:
  // Adds seconds to the time of a pass, which may run several times.
  void add(std::string_view pass, double seconds);
  // Returns a table: a header, one line per pass in the order in which the passes first ran, and a
  // line with the sum. If add() was never called, returns a message that says so.
  std::string table() const;

 private:
  std::vector<std::pair<std::string, double>> passes_;
};

}  // namespace heddle::tools
