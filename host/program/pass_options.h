#pragma once

#include <cstdint>

#include "host/program/program.h"
#include "ir/base/pass_driver.h"

namespace heddle::host {

// The options of all passes of a compilation, on the fusion and on the host program.
struct PassOptions : heddle::PassOptions {
  // false keeps communication on stream 0 and splits nothing into chunks.
  bool overlap = true;
  // Number of chunks of a matrix product next to a collective
  // (host/passes/chunk/chunk_collectives.h); 1 leaves it unsplit. It must be equal on every rank of
  // a job. `stream(0: 4)` in the text takes precedence.
  static constexpr int64_t kAutoChunks = 0;  // a cost model decides
  static constexpr int64_t kMostChunks = 64;
  int64_t chunks = kAutoChunks;
  // Sizes for the cost model. Other symbols have the defaults of the program.
  SizeBindings chunk_sizes = {};
};

}  // namespace heddle::host
