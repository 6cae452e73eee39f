#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "host/program/program.h"

namespace heddle::host {

struct PassOptions {
  std::vector<std::string> skip;  // names of passes left out
  bool overlap = true;            // false: communication on stream 0, and nothing in chunks
  // Into how many chunks a product next to a collective is cut
  // (host/passes/chunk/chunk_collectives.h); 1: stays whole. The same on every rank of a job.
  // `stream(0: 4)` in the text goes before.
  static constexpr int64_t kAutoChunks = 0;  // as a cost model says
  static constexpr int64_t kMostChunks = 64;
  int64_t chunks = kAutoChunks;
  SizeBindings chunk_sizes = {};  // for the cost model; the program's defaults for the others
  // Called after a pass that changed the program: (pass name, program).
  std::function<void(std::string_view, const Program&)> dump;
  std::function<void(std::string_view, double seconds)> timing;
};

}  // namespace heddle::host
