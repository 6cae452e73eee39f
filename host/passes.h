#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "host/program.h"

namespace heddle::host {

struct PassOptions {
  std::vector<std::string> skip;  // names of passes left out
  bool overlap = true;            // false: communication on stream 0
  // Called after a pass that changed the program: (pass name, program).
  std::function<void(std::string_view, const Program&)> dump;
  std::function<void(std::string_view, double seconds)> timing;
};

// Runs the passes of host/pipeline.cpp in order through one door that skips, times, dumps and
// verifies. The result passes verify().
Program runPasses(Program program, const PassOptions& options = {});

}  // namespace heddle::host
