#pragma once

#include <cstdint>

#include "host/program/program.h"
#include "ir/base/pass_options.h"

namespace heddle::host {

// The options of all passes of a compilation. Some passes rewrite the fusion, and some the host
// program.
struct PassOptions : heddle::PassOptions {
  // true: communication runs beside computation. Collectives get their own streams. Matrix products
  // next to collectives may be split into chunks of rows (`chunks`). false: collectives keep their
  // streams, and nothing is split.
  bool overlap = true;
  // Number of chunks of a matrix product and of the collective next to it. 1: no split. All ranks
  // of a job must pass the same number. If a tensor of the fusion has its own number of chunks,
  // such as 4 in `stream(0: 4)`, that number takes precedence. If `overlap` is false, nothing is
  // split.
  static constexpr int64_t kAutoChunks = 0;   // a cost model decides
  static constexpr int64_t kMostChunks = 64;  // largest value of `chunks`
  int64_t chunks = kAutoChunks;
  // Sizes for the cost model, by symbol. For all other symbols, the cost model uses the defaults of
  // the program. A symbol without a default counts as 4096.
  SizeBindings chunk_sizes = {};
};

}  // namespace heddle::host
